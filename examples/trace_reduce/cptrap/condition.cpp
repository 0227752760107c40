// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A small trace in memory describes the fields of CPTRAP records, and each record that is asked is
/// laid out as a record of that trace. So conditions are checked, compiled and run by the one
/// evaluator. This is a separate file because a recorder takes long to compile.

#include "condition.hpp"
#include "../where/check.hpp"
#include "../where/kinds.hpp"
#include "../where/predicate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/runtime_event.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "ebcdic.hpp"
#include "names.hpp"
#include "notation.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

// Named, because `parts` has one of its classes.
namespace spool_fields {

using trace_ring::field_form;
using trace_ring::field_type;
using trace_ring::runtime_event;

/// The longest record, a whole spool record, with five copies of its data.
constexpr std::size_t most_words = 3 * record::spool_record_bytes;

struct known_field {
    std::string_view name;
    field_type type;
    bool row = false;  ///< of variable length
    bool of_header = false;
    bool of_entry = false;
};
constexpr known_field known_fields[] = {
    {"type", field_type::u8},
    {"code", field_type::u16, false, true},
    {"length", field_type::u16},
    {"page", field_type::u64},
    {"index", field_type::u32},
    {"offset", field_type::u64},
    {"entry", field_type::u8, false, false, true},
    {"attached", field_type::boolean, false, false, true},
    {"data", field_type::u8, true},
    {"halfwords", field_type::u16, true},
    {"words", field_type::u32, true},
    {"ebcdic", field_type::character, true},
    {"ascii", field_type::character, true},
};

/// What records there are: with the header, entries of CP's trace table, and without a header.
enum class shape : std::uint8_t { headed, entry, bare };
constexpr std::array<std::string_view, 3> shape_names{"record", "table_entry", "without_header"};

[[nodiscard]] bool has(shape of, const known_field& field) {
    return (!field.of_header || of != shape::bare) && (!field.of_entry || of == shape::entry);
}

runtime_event& event_of(shape of) {
    static const auto types = [] {
        std::vector<runtime_event::named_value> out;
        for (unsigned i = 0; i < 256; ++i) {
            const auto name = name_of(static_cast<record::cptrap_type>(i));
            if (!name.empty()) out.push_back({i, name});
        }
        return out;
    }();
    static const auto events = [] {
        std::vector<runtime_event::named_value> out;
        for (unsigned i = 0; i < impl::cp_event_names.size(); ++i) {
            const auto name = name_of(static_cast<record::cp_event>(i));
            if (!name.empty()) out.push_back({i, name});
        }
        return out;
    }();
    std::vector<runtime_event::field> all;
    for (const auto& each : known_fields) {
        if (!has(of, each)) continue;
        runtime_event::field made{
            each.name, each.type, each.row ? field_form::variable : field_form::scalar, 1, {}};
        if (each.name == "type") made.values = types;
        if (each.name == "entry") made.values = events;
        all.push_back(made);
    }
    return runtime_event::make(shape_names[static_cast<std::size_t>(of)], all);
}

/// Whether the condition has this name in it.
[[nodiscard]] bool names(const expressions::expression& of, std::string_view field) {
    return of.word == field || std::any_of(of.parts.begin(), of.parts.end(),
                                           [&](const auto& part) { return names(part, field); });
}

/// The first name that no record of a CPTRAP file has.
[[nodiscard]] std::optional<expressions::mistake> wrong_name(const expressions::expression& at) {
    namespace where = trace_reduce::where;
    using trace_ring::point::form;
    if (at.what == form::name || at.what == form::field || at.what == form::element) {
        const bool known = std::any_of(std::begin(known_fields), std::end(known_fields),
                                       [&](const auto& each) { return each.name == at.word; });
        if (!known) {
            std::string what = "a record of a CPTRAP file has no '" + at.word + "'";
            if (at.word == "time" || at.word == "latest" || at.word == "ticks") {
                what = "a record of a CPTRAP file has no time";
            } else {
                where::nearest to(at.word, 3);
                for (const auto& each : known_fields) to.look(each.name);
                if (to.found().empty()) {
                    const char* between = "; there is ";
                    for (const auto& each : known_fields) {
                        what += between + std::string(each.name);
                        between = ", ";
                    }
                } else {
                    what += to.suggestion();
                }
            }
            return expressions::mistake{at.column, at.length, std::move(what)};
        }
    }
    for (const auto& part : at.parts) {
        if (auto found = wrong_name(part)) return found;
    }
    return std::nullopt;
}

[[nodiscard]] trace_ring::recorder_options least_memory() {
    trace_ring::recorder_options options;
    options.size = 0x8000;
    options.lanes = 8;
    options.processes = options.programs = 1;
    options.control = trace_ring::control_mode::off;
    return options;
}

/// A record of the trace that describes them.
class laid_out_record {
public:
    laid_out_record() : words_(most_words) {}

    /// With the `wanted` fields; the others are 0 or empty. Good until the next call.
    [[nodiscard]] reduce::record_view lay_out(const reduce::spool_item& item,
                                              const reduce::event_type& type,
                                              std::span<const reduce::field_info* const> wanted,
                                              const reduce::lane_info& lane) {
        data_ = data_of(item);
        std::memset(words_.data() + 1, 0, type.fixed_bytes);
        end_ = type.fixed_bytes;
        for (const auto* const field : wanted) put(*field, item);
        const std::size_t bytes = 8 + (end_ + 7) / 8 * 8;
        words_[0] = std::uint64_t{trace_ring::record_word::pack(type.id, bytes)} << 32;
        return {{&lane, &type}, words_.data(), 0};
    }

private:
    [[nodiscard]] std::byte* payload() noexcept {
        return reinterpret_cast<std::byte*>(words_.data() + 1);
    }
    template <class T>
    void put(std::size_t at, T value) noexcept {
        std::memcpy(payload() + at, &value, sizeof value);
    }
    void put(const reduce::field_info& field, const reduce::spool_item& item) {
        const auto& one = item.record;
        const std::string_view name = field.name;
        if (name == "type") {
            put(field.offset, static_cast<std::uint8_t>(one.type));
        } else if (name == "code") {
            put(field.offset, one.code);
        } else if (name == "length") {
            put(field.offset, static_cast<std::uint16_t>(item.bytes.size()));
        } else if (name == "page") {
            put(field.offset, item.number);
        } else if (name == "index") {
            put(field.offset, static_cast<std::uint32_t>(item.index));
        } else if (name == "offset") {
            put(field.offset, item.offset);
        } else if (name == "entry") {
            put(field.offset, static_cast<std::uint8_t>(one.entry()->event()));
        } else if (name == "attached") {
            put(field.offset, one.entry()->attached());
        } else if (name == "data") {
            put_row<std::byte>(field, [](const std::byte* from) { return *from; });
        } else if (name == "halfwords") {
            put_row<std::uint16_t>(field, &big<std::uint16_t>);
        } else if (name == "words") {
            put_row<std::uint32_t>(field, &big<std::uint32_t>);
        } else if (name == "ebcdic") {
            put_row<char>(field, [](const std::byte* from) { return ebcdic_character(*from); });
        } else {
            put_row<char>(field, [](const std::byte* from) { return ascii_character(*from); });
        }
    }
    template <class T>
    [[nodiscard]] static T big(const std::byte* from) {
        return record::load_big<T>(std::span(from, sizeof(T)));
    }
    /// The data as elements; what is left of the last one is no element.
    template <class T, class Make>
    void put_row(const reduce::field_info& field, const Make& make) {
        const std::size_t count = data_.size() / sizeof(T);
        put(field.offset, static_cast<std::uint16_t>(count * sizeof(T)));
        std::size_t at = (end_ + 7) / 8 * 8;
        for (std::size_t i = 0; i < count; ++i, at += sizeof(T)) {
            put(at, make(data_.data() + i * sizeof(T)));
        }
        end_ = at;
    }

    std::vector<std::uint64_t> words_;
    std::span<const std::byte> data_{};
    std::size_t end_ = 0;  // of the payload so far
};

}  // namespace spool_fields

struct spool_condition::parts {
    using shape = spool_fields::shape;

    std::array<trace_ring::runtime_event*, 3> events{&spool_fields::event_of(shape::headed),
                                                     &spool_fields::event_of(shape::entry),
                                                     &spool_fields::event_of(shape::bare)};
    trace_ring::recorder described{spool_fields::least_memory()};
    reduce::trace_file trace{
        reduce::trace_file::from({described.bytes().first, described.bytes().second})};
    std::array<const reduce::event_type*, 3> types{};
    std::array<std::vector<const reduce::field_info*>, 3> wanted{};  // that the condition names
    reduce::lane_info lane{};
    std::optional<trace_reduce::where::predicate> asks{};
    spool_fields::laid_out_record made{};
};

spool_condition::spool_condition(std::unique_ptr<parts> own) : own_(std::move(own)) {}

spool_condition::made spool_condition::make(const expressions::expression& what) {
    if (auto wrong = spool_fields::wrong_name(what)) return std::move(*wrong);
    auto own = std::make_unique<parts>();
    // The trace knows an event from its first record on.
    for (trace_ring::runtime_event* const each : own->events) {
        (void)each->record(own->described, std::vector<std::uint64_t>(each->fixed_bytes() / 8));
    }
    auto& in = own->trace;
    in.refresh();
    for (const auto& type : in.about().events().types()) {
        for (std::size_t i = 0; i < own->types.size(); ++i) {
            if (type.name == spool_fields::shape_names[i]) own->types[i] = &type;
        }
    }
    const reduce::tables* const traces[] = {&in.about()};
    if (auto wrong = trace_reduce::where::find_mistake(what, traces)) return std::move(*wrong);
    for (std::size_t i = 0; i < own->types.size(); ++i) {
        for (const auto& field : own->types[i]->fields) {
            if (spool_fields::names(what, field.name)) own->wanted[i].push_back(&field);
        }
    }
    own->asks.emplace(in.about(), what);
    return std::shared_ptr<const spool_condition>(new spool_condition(std::move(own)));
}

spool_condition::~spool_condition() = default;

bool spool_condition::holds(const reduce::spool_item& item) const {
    using shape = spool_fields::shape;
    const shape is = item.record.entry()  ? shape::entry
                     : item.record.headed ? shape::headed
                                          : shape::bare;
    const auto at = static_cast<std::size_t>(is);
    const auto view = own_->made.lay_out(item, *own_->types[at], own_->wanted[at], own_->lane);
    return own_->asks->ask(view) == trace_reduce::where::truth::yes;
}

}  // namespace trace_reduce
