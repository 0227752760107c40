// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "otlp_destination.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/loss.hpp>

#include "../shown.hpp"

namespace trace_ship {

namespace {

constexpr std::chrono::hours renewed_after{24};
constexpr std::chrono::hours forgotten_after{7 * 24};

http_settings with_path(http_settings of, const char* path) {
    of.url += path;
    of.headers.emplace_back("Content-Type: application/x-protobuf");
    return of;
}

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count());
}

/// Whether the same request may succeed later. 429 and 502 to 504 say so. A redirection, and 401,
/// 403, 407 and 408, do not judge the request's items: someone has to correct the options or the
/// server.
bool may_succeed_later(long status) {
    constexpr long codes[] = {0, 401, 403, 407, 408, 429, 502, 503, 504};
    return status / 100 == 3 ||
           std::find(std::begin(codes), std::end(codes), status) != std::end(codes);
}

/// Reads the fields of a message, in Protocol Buffers' encoding.
class message_reader {
public:
    explicit message_reader(std::string_view bytes) : rest_(bytes) {}
    /// False at the end, or if the message is damaged.
    [[nodiscard]] bool next() {
        std::uint64_t key = 0;
        if (rest_.empty() || !varint(key)) return false;
        field_ = key >> 3;
        std::uint64_t size = 0;
        switch (key & 7) {
            case 0:
                return varint(number_);
            case 1:
                size = 8;
                break;
            case 2:
                if (!varint(size)) return false;
                break;
            case 5:
                size = 4;
                break;
            default:
                damaged_ = true;
                return false;
        }
        if (size > rest_.size()) {
            damaged_ = true;
            return false;
        }
        bytes_ = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
    }
    [[nodiscard]] std::uint64_t field() const noexcept { return field_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool damaged() const noexcept { return damaged_; }

private:
    [[nodiscard]] bool varint(std::uint64_t& value) {
        value = 0;
        for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(rest_[0]);
            rest_.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) return true;
        }
        damaged_ = true;
        return false;
    }

    std::string_view rest_;
    std::string_view bytes_{};
    std::uint64_t field_ = 0;
    std::uint64_t number_ = 0;
    bool damaged_ = false;
};

/// What a server's answer says about items that it did not take: its field partial_success.
struct partial_success {
    std::uint64_t rejected = 0;
    std::string message{};
};
/// Nothing if the answer is damaged.
std::optional<partial_success> read_answer(std::string_view answer) {
    partial_success made;
    message_reader outer(answer);
    while (outer.next()) {
        if (outer.field() != 1) continue;
        message_reader inner(outer.bytes());
        while (inner.next()) {
            if (inner.field() == 1) made.rejected = inner.number();
            if (inner.field() == 2) made.message = inner.bytes().substr(0, 500);
        }
        if (inner.damaged()) return std::nullopt;
    }
    if (outer.damaged()) return std::nullopt;
    return made;
}

const char* noun_of(otlp::signal of) {
    return of == otlp::signal::traces ? " spans" : " log records";
}

/// Calls `access`. If the state cannot be read or written, this is a failure that may be over
/// later.
template <class Access>
auto in_state(Access&& access) {
    try {
        return access();
    } catch (const refusal&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& fault) {
        throw refusal(fault.what());
    }
}

}  // namespace

otlp_destination::otlp_destination(const http_settings& http, const otlp_settings& settings)
    : url_(http.url),
      traces_(with_path(http, "v1/traces")),
      logs_(with_path(http, "v1/logs")),
      settings_(settings),
      folder_(settings.state),
      writer_({.host = settings.host,
               .exported_ns = now_ns(),
               .request_bytes = settings.request_bytes}) {}

void otlp_destination::prepare() {
    // Requests without items, which show whether the options are right.
    for (const auto of : {otlp::signal::traces, otlp::signal::logs}) {
        try {
            client_of(of).post("", {});
        } catch (const refusal& fault) {
            const bool no_server = fault.status == 404 && of == otlp::signal::traces;
            if (no_server || may_succeed_later(fault.status)) throw;
            if (fault.status == 404) {
                complain("trace-ship", std::string(fault.what()) +
                                           ": this server takes no log records: they are refused");
            }
        }
    }
}

delivered otlp_destination::state_of(const clickhouse::trace_identity& trace) {
    return in_state([&] { return folder_.load(trace.text()).arrived; });
}

std::size_t otlp_destination::add_trace(const reduce::tables& in,
                                        const clickhouse::trace_identity& trace) {
    followed made;
    made.in = &in;
    made.trace = trace.text();
    made.state = in_state([&] { return folder_.load(made.trace); });
    made.awaited = std::exchange(made.state.open, {});
    const std::size_t number = writer_.add(in);
    followed_.emplace(number, std::move(made));
    return number;
}

void otlp_destination::remove_trace(std::size_t number) {
    followed& of = followed_.at(number);
    while (!of.awaited.empty()) report_lost(number, of, *of.awaited.begin(), nullptr);
    of.state.open.clear();
    of.state.left = std::move(of.left);
    const auto open = writer_.open_spans(number);
    for (const auto& each : open) of.state.left.emplace(each.lane, each.at);
    writer_.set_exported(now_ns());
    writer_.remove(number);
    items_ += open.size();
    if (of.changed || !open.empty()) removed_[of.trace] = std::move(of.state);
    followed_.erase(number);
}

void otlp_destination::note(delivered& arrived, const reduce::item& what) {
    if (const auto* record = std::get_if<reduce::record_view>(&what)) {
        auto& lane = arrived.lanes[record->lane().number];
        lane.next = record->position() + 1;
        ++lane.positions;
        return;
    }
    if (const auto place = delivered::place_of(what)) {
        arrived.places.insert(*place);
        return;
    }
    const auto& loss = std::get<reduce::loss_item>(what);
    auto& lane = arrived.lanes[loss.lane == nullptr ? 0 : loss.lane->number];
    if (loss.lane != nullptr && was_written(loss.cause)) {
        lane.next = loss.at + loss.count;
        lane.positions += loss.count;
    } else {
        lane.counted.add(loss.cause, loss.count);
    }
}

/// A begin that the state lists is not there any more. `loss`: it is in this; null: the lane may be
/// gone as well.
void otlp_destination::report_lost(std::size_t from, followed& of, trace_state::place begin,
                                   const reduce::loss_item* loss) {
    reduce::loss_item made;
    if (loss != nullptr) made = *loss;
    made.count = 1;
    made.at = begin.second;
    made.lane = of.in->find_lane(begin.first);
    writer_.append(from, reduce::item(made));
    of.awaited.erase(begin);
    of.changed = true;
    ++items_;
}

void otlp_destination::report_departed(std::size_t from, followed& of) {
    const auto places = of.awaited;
    for (const auto& each : places) {
        if (of.in->find_lane(each.first) == nullptr) report_lost(from, of, each, nullptr);
    }
}

void otlp_destination::pass_over(std::size_t from, const clickhouse::row_item& one) {
    followed& of = followed_.at(from);
    if (const auto* record = std::get_if<reduce::record_view>(one.what)) {
        // Of spans with both ends there is nothing to do any more.
        const trace_state::place place{record->lane().number, record->position()};
        if (of.awaited.erase(place) != 0) {
            writer_.observe(from, *one.what);
        } else if (of.state.left.contains(place)) {
            of.left.insert(place);
        }
        return;
    }
    writer_.observe(from, *one.what);
    const auto* const loss = std::get_if<reduce::loss_item>(one.what);
    if (loss == nullptr) return;
    if (loss->lane == nullptr) return report_departed(from, of);
    if (!was_written(loss->cause)) return;
    const std::uint32_t lane = loss->lane->number;
    for (;;) {
        const auto lost = of.awaited.lower_bound({lane, loss->at});
        if (lost == of.awaited.end() || lost->first != lane ||
            lost->second - loss->at >= loss->count) {
            return;
        }
        report_lost(from, of, *lost, loss);
    }
}

bool otlp_destination::add(std::size_t from, const clickhouse::row_item& one) {
    if (delivering_ || !requests_.empty() || items_ >= settings_.most_items) return false;
    followed& of = followed_.at(from);
    if (items_ == 0) writer_.set_exported(now_ns());
    const auto* const loss = std::get_if<reduce::loss_item>(one.what);
    if (loss != nullptr && loss->lane == nullptr) report_departed(from, of);
    note(of.state.arrived, *one.what);
    of.changed = true;
    ++items_;
    writer_.append(from, *one.what);
    for (auto& each : writer_.take()) requests_.push_back(std::move(each));
    return true;
}

std::size_t otlp_destination::bytes() const {
    std::size_t sum = writer_.bytes();
    for (const auto& each : requests_) sum += each.body.size();
    return sum;
}

void otlp_destination::deliver() {
    if (items_ == 0) return;
    delivering_ = true;
    writer_.flush();
    for (auto& each : writer_.take()) requests_.push_back(std::move(each));
    for (; !requests_.empty(); requests_.pop_front()) send(requests_.front());
    in_state([&] { save(); });
    items_ = 0;
    delivering_ = false;
}

void otlp_destination::send(const otlp::request& one) {
    std::string answer;
    try {
        answer = client_of(one.of).post("", one.body);
    } catch (const refusal& fault) {
        if (may_succeed_later(fault.status)) throw;
        // Some servers answer 202 or 204.
        if (fault.status / 100 != 2) return refuse(one, one.items, fault.what());
    }
    sent_bytes_ += one.body.size();
    take_answer(one, answer);
}

void otlp_destination::take_answer(const otlp::request& one, std::string_view answer) {
    const auto partial = read_answer(answer);
    const std::string why =
        partial ? partial->message : "the server's answer with status 200 cannot be read";
    if (partial && partial->rejected != 0) {
        return refuse(one, (std::min)(partial->rejected, one.items), url_ + ": " + why);
    }
    if (!why.empty() && why != warned_) complain("trace-ship", url_ + ": a warning: " + why);
    warned_ = why;
}

void otlp_destination::refuse(const otlp::request& one, std::uint64_t items,
                              const std::string& why) {
    refused_items_ += items;
    complain("trace-ship", why + ": " + std::to_string(items) + noun_of(one.of) +
                               " are refused, and are not sent again");
}

void otlp_destination::save() {
    for (auto& [number, of] : followed_) {
        if (!of.changed) continue;
        of.state.open = of.awaited;
        for (const auto& each : writer_.open_spans(number)) {
            of.state.open.emplace(each.lane, each.at);
        }
        folder_.save(of.trace, of.state);
        of.changed = false;
    }
    for (const auto& [trace, state] : removed_) folder_.save(trace, state);
    folder_.sync();
    removed_.clear();
}

void otlp_destination::keep(const std::set<std::string>& traces) {
    try {
        for (const auto& each : folder_.entries()) {
            if (traces.contains(each.trace)) {
                if (each.age > renewed_after) folder_.renew(each.trace);
            } else if (each.age > forgotten_after) {
                const std::size_t open = folder_.load(each.trace).open.size();
                folder_.remove(each.trace);
                if (open == 0) continue;
                complain("trace-ship", "the file of trace " + each.trace + " is gone, and " +
                                           std::to_string(open) +
                                           " spans that had begun in it were never sent");
            }
        }
    } catch (const std::exception& fault) {
        complain("trace-ship", fault.what());
    }
}

}  // namespace trace_ship
