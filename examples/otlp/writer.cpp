// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "writer.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/loss.hpp>

#include "../protobuf.hpp"
#include "../records/kept_record.hpp"
#include "../records/span_nesting.hpp"
#include "attributes.hpp"
#include "event_keys.hpp"
#include "numbers.hpp"

namespace otlp {

using trace_ring::exporter::span_length;

/// A span that has begun.
struct writer::kept {
    records::kept_record begin;
    reduce::span_place place;
    span_context own{};
    span_context outer{};  // the span around it; of span 0: none
    bool linked = false;   // that is in another trace
    bool cut_off = false;  // records are missing after the begin
};

/// A trace file.
struct writer::source {
    struct open_span {
        reduce::span_place place;
        span_context own;
    };
    using pairs = reduce::span_pairs<kept>;

    explicit source(const event_keys::flow_choice& is_flow) : keys(is_flow) {}

    const reduce::tables* in = nullptr;
    file_id id{};
    std::string id_text{};
    pairs open{};
    records::span_nesting<open_span> nesting{};
    event_keys keys;
    std::unordered_map<const reduce::lane_info*, std::size_t> resources{};  // null: of no process
    const reduce::lane_info* last_lane = nullptr;
    std::size_t last_resource = 0;
    std::size_t near = 0;  // the clock reading after the last time

    [[nodiscard]] std::int64_t ns(std::uint64_t ticks) {
        return in->time().realtime_ns(ticks, near);
    }
    /// Whether the format has this time.
    [[nodiscard]] bool dated(std::uint64_t ticks) { return in->time().known() && ns(ticks) > 0; }
};

namespace {

using signed_ns = std::int64_t;

[[nodiscard]] std::string scope() {
    text_buffer out;
    proto::bytes(out, numbers::scope::name, "trace_ring");
    proto::bytes(out, numbers::scope::version, TRACE_RING_VERSION);
    return std::string(out.view());
}

void append_trace(text_buffer& out, numbers::number field, const trace_id& id) {
    proto::message(out, field, [&] { append(out, id); });
}
void append_span(text_buffer& out, numbers::number field, std::uint64_t id) {
    proto::message(out, field, [&] { append(out, id); });
}

/// The names of a record's attributes besides its fields. The end of a span has other names.
struct record_keys {
    std::string_view lane, position, thread, thread_name, depth, interval, latest, cut, fault, raw;
};
constexpr record_keys plain_keys{key::lane,  key::position, key::thread, key::thread_name,
                                 key::depth, key::interval, key::latest, key::cut,
                                 key::fault, key::raw};
constexpr record_keys end_keys{
    key::end_lane,     key::end_position, key::end_thread, key::end_thread_name, key::end_depth,
    key::end_interval, key::end_latest,   key::end_cut,    key::end_fault,       key::end_raw};

void add_lane(attributes& to, const reduce::lane_info& lane, const record_keys& keys) {
    to.add(keys.lane, std::uint64_t{lane.number});
    if (!lane.listed) return;
    to.add(keys.thread, std::uint64_t{lane.thread});
    to.add(keys.thread_name, std::string_view(valid_text(lane.name)));
    if (lane.depth != 0) to.add(keys.depth, std::uint64_t{lane.depth});
}

/// Adds what a record has besides its lane. `fields`: the names of its fields; null: it has none.
template <class Ns>
void add_record(attributes& to, const reduce::record_view& record, const record_keys& keys,
                const std::vector<std::string>* fields, bool dated, const Ns& ns) {
    to.add(keys.position, record.position());
    if (record.interval()) {
        to.add(keys.interval, true);
        if (const auto latest = record.latest(); latest && dated) {
            to.add(keys.latest, signed_ns{ns(*latest)});
        }
    }
    if (record.lacks_results()) to.add(key::results, false);
    if (!record.fault().empty()) {
        to.add(keys.fault, record.fault());
        to.add(keys.raw, record.payload());
        return;
    }
    if (fields == nullptr) return;
    std::vector<std::string_view> cut;
    std::size_t i = 0;
    record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
        const std::string& name = (*fields)[i++];
        to.add(name, value);
        if (value.cut()) cut.push_back(name);
    });
    if (cut.empty()) return;
    to.add_with(keys.cut, [&] {
        any_value::append_array(to.out(), cut.size(),
                                [&](std::size_t at) { any_value::append(to.out(), cut[at]); });
    });
}

void append_event_name(text_buffer& out, std::string_view name) {
    proto::bytes(out, numbers::log_record::event_name, name);
    proto::message(out, numbers::log_record::body, [&] { any_value::append(out, name); });
}
void append_warning(text_buffer& out) {
    proto::number(out, numbers::log_record::severity, numbers::log_record::warn);
    proto::bytes(out, numbers::log_record::severity_text, "WARN");
}

}  // namespace

std::string_view to_string(span_state state) noexcept {
    constexpr std::string_view names[span_states] = {
        "open",          "end lost",    "given up",      "begin lost", "not nested",
        "undated begin", "undated end", "unknown begin", "unknown end"};
    return names[static_cast<std::size_t>(state)];
}

writer::writer(settings wanted)
    : settings_(std::move(wanted)),
      traces_(signal::traces, scope(), resources_, settings_.request_bytes),
      logs_(signal::logs, scope(), resources_, settings_.request_bytes) {}
writer::~writer() = default;

std::size_t writer::add(const reduce::tables& in) {
    auto made = std::make_unique<source>(settings_.is_flow);
    made->in = &in;
    made->id = records::id_of(in);
    made->id_text = made->id.text();
    sources_.push_back(std::move(made));
    return sources_.size() - 1;
}

void writer::append(std::size_t from, const reduce::item& what) {
    source& in = *sources_.at(from);
    std::visit([&](const auto& one) { append_item(in, one); }, what);
}

void writer::observe(std::size_t from, const reduce::item& what) {
    source& in = *sources_.at(from);
    const auto ignore = [](const kept&) {};
    if (const auto* record = std::get_if<reduce::record_view>(&what)) {
        if (!record->known()) return;
        if (record->begins()) {
            begin(in, *record, ignore);
        } else if (record->ends()) {
            static_cast<void>(end(in, *record, ignore));
        }
        return;
    }
    const auto* const loss = std::get_if<reduce::loss_item>(&what);
    const auto* const lane = loss != nullptr ? loss->lane : reduce::jump_in(what).lane;
    if (lane != nullptr) gap(in, *lane);
}

std::vector<reduce::span_place> writer::open_spans(std::size_t from) const {
    std::vector<reduce::span_place> places;
    sources_.at(from)->open.for_each_open(
        [&](const auto& each) { places.push_back(each.kept.place); });
    return places;
}

void writer::end(std::size_t from) {
    source& in = *sources_.at(from);
    std::vector<const source::pairs::begun*> left;
    in.open.for_each_open([&](const auto& each) { left.push_back(&each); });
    std::sort(left.begin(), left.end(), [](const auto* a, const auto* b) {
        return std::tuple(a->time, a->kept.place.lane, a->kept.place.at) <
               std::tuple(b->time, b->kept.place.lane, b->kept.place.at);
    });
    for (const auto* each : left) {
        leave(in, each->kept, each->kept.cut_off ? span_state::end_lost : span_state::open);
    }
    in.open = {};
    in.nesting.clear();
}

void writer::remove(std::size_t from) {
    end(from);
    sources_[from].reset();
}

void writer::flush() {
    traces_.finish();
    logs_.finish();
}

std::vector<request> writer::take() {
    auto all = traces_.take();
    for (auto& each : logs_.take()) all.push_back(std::move(each));
    return all;
}

std::string writer::counts_in_words() const {
    std::string text;
    for (std::size_t i = 0; i < span_states; ++i) {
        if (counts_[i] == 0) continue;
        if (!text.empty()) text += ", ";
        text += std::to_string(counts_[i]) + ' ';
        text += to_string(static_cast<span_state>(i));
    }
    return text;
}

void writer::append_item(source& in, const reduce::record_view& record) {
    if (record.known() && record.begins()) {
        return begin(in, record, [&](const kept& lost) { leave(in, lost, span_state::given_up); });
    }
    if (record.known() && record.ends()) return write_end(in, record);
    std::optional<span_state> state;
    if (record.begins()) state = span_state::unknown_begin;
    if (record.ends()) state = span_state::unknown_end;
    write_log(in, record, around(in, record), state);
}

template <class GivenUp>
void writer::begin(source& in, const reduce::record_view& record, GivenUp&& given_up) {
    kept made{records::kept_record(record), {record.lane().number, record.position()}};
    const auto* const outer = in.nesting.innermost(record.lane());
    if (outer != nullptr) made.outer = outer->own;
    const std::uint64_t flow = flow_of(in, record);
    made.own.span = span_id_of(in.id, made.place);
    made.own.trace = flow != 0          ? trace_id_of_flow(flow)
                     : outer != nullptr ? made.outer.trace
                                        : trace_id_of(in.id, made.place);
    made.linked = outer != nullptr && made.outer.trace != made.own.trace;
    in.nesting.begin(record.lane(), {made.place, made.own});
    in.open.begin(record, std::move(made), [&](const auto& lost) {
        in.nesting.end(lost.kept.begin.view().lane(), lost.kept.place);
        given_up(lost.kept);
    });
}

template <class Passed>
reduce::ended_span<writer::kept> writer::end(source& in, const reduce::record_view& record,
                                             Passed&& passed) {
    const auto over = [&](const kept& of) { in.nesting.end(of.begin.view().lane(), of.place); };
    auto found = in.open.end(record, [&](const auto& lost) {
        over(lost.kept);
        passed(lost.kept);
    });
    if (found.begun) over(found.begun->kept);
    return found;
}

void writer::write_end(source& in, const reduce::record_view& record) {
    const auto found =
        end(in, record, [&](const kept& lost) { leave(in, lost, span_state::end_lost); });
    if (!found.begun) {
        const auto state = found.not_nested ? span_state::not_nested : span_state::begin_lost;
        return write_log(in, record, around(in, record), state);
    }
    const kept& begun = found.begun->kept;
    if (in.dated(begun.begin.view().time()) && in.dated(record.time())) {
        return write_span(in, begun, record);
    }
    leave(in, begun, span_state::undated_begin);
    write_log(in, record, begun.own, span_state::undated_end);
}

void writer::gap(source& in, const reduce::lane_info& lane) {
    in.open.gap(lane, [](auto& left) { left.kept.cut_off = true; });
    in.nesting.forget(lane);
}

void writer::leave(source& in, const kept& begun, span_state state) {
    write_log(in, begun.begin.view(), begun.own, state);
}

void writer::write_span(source& in, const kept& begun, const reduce::record_view& end) {
    using field = numbers::span;
    const reduce::record_view begin = begun.begin.view();
    const auto& time = in.in->time();
    const signed_ns from = in.ns(begin.time());
    const signed_ns own_end = in.ns(end.time());
    const std::uint64_t ticks = end.time() > begin.time() ? end.time() - begin.time() : 0;
    const std::uint64_t passed = span_length{.ticks = ticks}.ns(time);
    const bool back = own_end < from;
    const bool jumps = std::any_of(time.jumps().begin(), time.jumps().end(), [&](const auto& each) {
        return begin.time() < each.to && each.to <= end.time();
    });
    const auto ns = [&](std::uint64_t at) { return in.ns(at); };
    const auto& names = in.keys.of(begin.type());
    traces_.add(resource_of(in, &begin.lane()), [&](text_buffer& out) {
        append_trace(out, field::trace_id, begun.own.trace);
        append_span(out, field::span_id, begun.own.span);
        if (begun.outer.span != 0 && !begun.linked) {
            append_span(out, field::parent, begun.outer.span);
        }
        proto::bytes(out, field::name, names.event);
        proto::number(out, field::kind, field::internal);
        proto::fixed64(out, field::start, static_cast<std::uint64_t>(from));
        proto::fixed64(
            out, field::end,
            back ? static_cast<std::uint64_t>(from) + passed : static_cast<std::uint64_t>(own_end));
        attributes to(out, field::attributes);
        add_record(to, begin, plain_keys, &names.fields, true, ns);
        add_lane(to, begin.lane(), plain_keys);
        add_record(to, end, end_keys, end.has_fields() ? &in.keys.of(end.type()).ends : nullptr,
                   true, ns);
        if (&end.lane() != &begin.lane()) add_lane(to, end.lane(), end_keys);
        if (back) to.add(key::end_time, own_end);
        if (back || jumps) to.add(key::duration, passed);
        if (begun.linked) {
            proto::message(out, field::links, [&] {
                append_trace(out, field::link_trace, begun.outer.trace);
                append_span(out, field::link_span, begun.outer.span);
                proto::fixed32(out, field::link_flags, numbers::sampled | numbers::knows_remote);
            });
        }
        proto::fixed32(out, field::flags, numbers::sampled | numbers::knows_remote);
    });
}

/// The times of a log record; a time that the format lacks is 0, and then attributes have it.
namespace {
void append_times(text_buffer& out, std::optional<signed_ns> ns, std::uint64_t exported) {
    const std::uint64_t time = ns ? static_cast<std::uint64_t>(*ns) : 0;
    proto::fixed64(out, numbers::log_record::time, time);
    proto::fixed64(out, numbers::log_record::observed, ns ? time : exported);
}
}  // namespace

void writer::write_log(source& in, const reduce::record_view& record, const span_context& around,
                       std::optional<span_state> state) {
    using field = numbers::log_record;
    if (state) ++counts_[static_cast<std::size_t>(*state)];
    const bool dated = in.dated(record.time());
    const auto ns = [&](std::uint64_t at) { return in.ns(at); };
    const auto* const names = record.known() ? &in.keys.of(record.type()) : nullptr;
    logs_.add(resource_of(in, &record.lane()), [&](text_buffer& out) {
        append_times(out, dated ? std::optional(in.ns(record.time())) : std::nullopt,
                     settings_.exported_ns);
        if (!record.fault().empty()) append_warning(out);
        append_event_name(out,
                          names != nullptr ? names->event : "event#" + std::to_string(record.id()));
        attributes to(out, field::attributes);
        add_record(to, record, plain_keys, names != nullptr ? &names->fields : nullptr,
                   in.in->time().known(), ns);
        add_lane(to, record.lane(), plain_keys);
        if (!dated) {
            to.add(key::ticks, record.time());
            if (in.in->time().known()) to.add(key::time, signed_ns{in.ns(record.time())});
        }
        if (!record.known()) to.add(key::id, std::uint64_t{record.id()});
        if (state) to.add(key::span, to_string(*state));
        if (const auto place = record.began()) {
            to.add(key::began_lane, std::uint64_t{place->lane});
            to.add(key::began_position, place->at);
        }
        if (around.trace == trace_id{}) return;
        proto::fixed32(out, field::flags, numbers::sampled);
        append_trace(out, field::trace_id, around.trace);
        if (around.span != 0) append_span(out, field::span_id, around.span);
    });
}

void writer::append_item(source& in, const reduce::loss_item& loss) {
    logs_.add(resource_of(in, loss.lane), [&](text_buffer& out) {
        const bool dated = loss.lane != nullptr && in.dated(loss.time);
        append_times(out, dated ? std::optional(in.ns(loss.time)) : std::nullopt,
                     settings_.exported_ns);
        append_warning(out);
        append_event_name(out, "trace_ring.loss");
        attributes to(out, numbers::log_record::attributes);
        to.add(key::cause, trace_ring::to_string(loss.cause));
        to.add(key::count, loss.count);
        if (loss.lane != nullptr) {
            to.add(key::position, loss.at);
            add_lane(to, *loss.lane, plain_keys);
            if (!dated) {
                to.add(key::ticks, loss.time);
                if (in.in->time().known()) to.add(key::time, signed_ns{in.ns(loss.time)});
            }
        }
        if (loss.cause == trace_ring::loss_cause::damaged) {
            to.add(key::offset, loss.offset);
            to.add(key::fault, loss.what);
        } else if (!loss.what.empty()) {
            to.add(key::advice, loss.what);
        }
    });
    if (loss.lane != nullptr) gap(in, *loss.lane);
}

void writer::append_item(source& in, const reduce::clock_jump& jump) {
    logs_.add(resource_of(in, jump.lane), [&](text_buffer& out) {
        const bool known = in.in->time().known();
        const bool dated = in.dated(jump.time);
        append_times(out, dated ? std::optional(in.ns(jump.time)) : std::nullopt,
                     settings_.exported_ns);
        append_warning(out);
        append_event_name(out, "trace_ring.clock_jump");
        attributes to(out, numbers::log_record::attributes);
        if (jump.lane != nullptr) {
            to.add(key::position, jump.at);
            add_lane(to, *jump.lane, plain_keys);
        } else {
            to.add(key::step, jump.step);
            if (jump.anew) to.add(key::anew, true);
        }
        if (known) to.add(key::from, signed_ns{in.ns(jump.from)});
        to.add(key::from_ticks, jump.from);
        to.add(key::ticks, jump.time);
        if (known && !dated) to.add(key::time, signed_ns{in.ns(jump.time)});
    });
    if (jump.lane != nullptr) gap(in, *jump.lane);
}

span_context writer::around(source& in, const reduce::record_view& record) {
    const auto* const innermost = in.nesting.innermost(record.lane());
    const span_context inner = innermost != nullptr ? innermost->own : span_context{};
    const std::uint64_t flow = flow_of(in, record);
    if (flow == 0) return inner;
    const trace_id own = trace_id_of_flow(flow);
    return {own, inner.trace == own ? inner.span : 0};
}

std::uint64_t writer::flow_of(source& in, const reduce::record_view& record) {
    if (!record.known() || !record.has_fields()) return 0;
    for (const std::size_t i : in.keys.of(record.type()).flows) {
        const reduce::field_value value = record.field(i);
        for (std::size_t k = 0; k < value.size(); ++k) {
            if (const std::uint64_t flow = value.at(k).u64(); flow != 0) return flow;
        }
    }
    return 0;
}

std::size_t writer::resource_of(source& in, const reduce::lane_info* lane) {
    const bool known = lane != nullptr && lane->process;
    const reduce::lane_info* const whose = known ? lane : nullptr;
    if (whose == in.last_lane && !in.resources.empty()) return in.last_resource;
    const auto [at, is_new] = in.resources.try_emplace(whose);
    if (is_new) {
        // The entry of a process that departed may belong to another one by now.
        const auto& all = in.in->processes();
        const bool listed =
            known && *lane->process < all.size() && all[*lane->process].pid == lane->pid;
        const std::string_view name = listed ? all[*lane->process].name : std::string_view();
        text_buffer out;
        attributes to(out, numbers::resource::attributes);
        to.add("service.name",
               std::string_view(name.empty() ? "unknown_service" : valid_text(name)));
        if (known) {
            to.add("process.pid", std::uint64_t{lane->pid});
            to.add("trace_ring.process", std::uint64_t{*lane->process});
        }
        if (!settings_.host.empty())
            to.add("host.name", std::string_view(valid_text(settings_.host)));
        to.add("trace_ring.file.id", std::string_view(in.id_text));
        // Lanes of one process have one resource.
        const std::string made(out.view());
        const auto same = std::find(resources_.begin(), resources_.end(), made);
        at->second = static_cast<std::size_t>(same - resources_.begin());
        if (same == resources_.end()) resources_.push_back(made);
    }
    in.last_lane = whose;
    in.last_resource = at->second;
    return at->second;
}

}  // namespace otlp
