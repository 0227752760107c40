// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Events that are known at run time only: of programs that record what a script, or another trace,
/// says. Where the fields are known when the program is compiled, declare a struct
/// (record/event.hpp).
/// @code
///   auto& called = trace_ring::runtime_event::make("malloc", fields);
///   std::vector<std::uint64_t> payload(called.fixed_bytes() / 8);
///   payload[called.offset(0) / 8] = size;
///   called.record(recorder, payload);
/// @endcode
/// One that begins and ends is a span: `make_span`, `begin` and `end`.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/value_names.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring::inline v1 {

// Another class where tracing is compiled away, so that files with it and without it can be linked
// into one program.
#if defined(TRACE_RING_DISABLE)
inline namespace disabled {
#endif
/// An event whose name and fields are known at run time only.
class runtime_event {
public:
    /// A value and its name in readers.
    struct named_value {
        std::uint64_t value = 0;  ///< of a signed field, extended with its sign
        std::string_view name;    ///< the name: UTF-8
    };
    /// Describes a field.
    struct field {
        std::string_view name;                 ///< the name: UTF-8, unique in the event
        field_type type = field_type::u64;     ///< the type of its elements
        field_form form = field_form::scalar;  ///< one value, an array, or a text
        std::uint16_t count = 1;               ///< of an array's elements
        /// Names of whole numbers, as far as the dictionary has room for them (most_names_bytes).
        std::span<const named_value> values{};
    };

    /// Describes an event. It lives as long as the program, whose recorders have its type from then
    /// on; of a second one with the same name and fields records are of the same type. Any thread;
    /// allocates. Throws std::invalid_argument if a name is empty or longer than 1,000 bytes, if
    /// there are more than 1,000 fields or two of a name, if a type does not exist or has values
    /// with names and is no whole number's, or if the fields do not fit into a record.
    /// `ring`: as `ring` of a struct, one of the recorder's quotas.
    [[nodiscard]] static runtime_event& make(std::string_view name, std::span<const field> fields,
                                             std::uint32_t ring = 0) {
        return keep(token{event_kind::instant, fields.size(), ring}, name, fields);
    }
    /// The same for a span. Its end has the `results`, which are numbered after the fields.
    [[nodiscard]] static runtime_event& make_span(std::string_view name,
                                                  std::span<const field> fields,
                                                  std::span<const field> results) {
        std::vector<field> all(fields.begin(), fields.end());
        all.insert(all.end(), results.begin(), results.end());
        return keep(token{event_kind::span, fields.size(), 0}, name, all);
    }

    /// A span that has begun. To be copied.
    class begun {
        friend class runtime_event;
#if !defined(TRACE_RING_DISABLE)
        impl::open_span span_{};
#endif
    };

    /// Keeps others from calling the constructor.
    struct token {
        event_kind kind;             ///< event or span
        std::size_t before_results;  ///< number of fields that are not results
        std::uint32_t ring;          ///< number of the quota's ring; 0: none
    };
    /// By `make` and `make_span` alone.
    runtime_event(token what, std::string_view name, std::span<const field> fields)
        : name_(name),
          before_results_(what.before_results),
          names_(fields.size()),
          fields_(fields.size()),
          value_names_(words_of_names(fields)),
          state_{described(what.kind, fields), what.ring} {}
    runtime_event(const runtime_event&) = delete;
    runtime_event& operator=(const runtime_event&) = delete;

    /// Where field number `i` begins in the payload. A variable field begins with its 16-bit
    /// length.
    [[nodiscard]] std::uint32_t offset(std::size_t i) const noexcept {
        return fields_[i].offset;
    }
    /// Bytes of the payload before variable data, a multiple of 8.
    [[nodiscard]] std::uint32_t fixed_bytes() const noexcept {
        return state_.description.fixed_bytes;
    }
    /// The same for the results of a span.
    [[nodiscard]] std::uint32_t result_bytes() const noexcept {
        return result_bytes_;
    }

    /// Records the event. `payload` is as record/field.hpp says: the fixed part, then the data of
    /// variable fields in their order, each padded to 8 bytes. False: the gate is shut, the record
    /// is lost and counted, or the payload is shorter than the fixed part. Like `record` of the
    /// recorder, but always by its cold path.
    template <class Kind>
    bool record(basic_recorder<Kind>& to, std::span<const std::uint64_t> payload) noexcept {
#if defined(TRACE_RING_DISABLE)
        static_cast<void>(to);
        static_cast<void>(payload);
        return false;
#else
        return append(to, payload, false, 0, nullptr);
#endif
    }
    /// Records that a span begins; what ends it is in `span`. Else as `record`.
    template <class Kind>
    bool begin(basic_recorder<Kind>& to, std::span<const std::uint64_t> payload,
               begun& span) noexcept {
#if defined(TRACE_RING_DISABLE)
        static_cast<void>(span);
        return record(to, payload);
#else
        return append(to, payload, false, record_word::begin, &span.span_);
#endif
    }
    /// Records that a span ends, with its results, or without them if these are empty. If spans of
    /// the thread that began later have not ended, or it began in another thread, the record says
    /// which span it is. Else as `record`, but the gate does not matter.
    template <class Kind>
    bool end(basic_recorder<Kind>& to, std::span<const std::uint64_t> results,
             const begun& span) noexcept {
#if defined(TRACE_RING_DISABLE)
        static_cast<void>(span);
        return record(to, results);
#else
        begun its = span;
        return append(to, results, true, record_word::end, &its.span_);
#endif
    }

    /// Counts records that the source of this thread's records has lost: as refused, at this place
    /// in the trace.
    template <class Kind>
    static void lose(basic_recorder<Kind>& to, std::uint32_t count) noexcept {
#if defined(TRACE_RING_DISABLE)
        static_cast<void>(to);
        static_cast<void>(count);
#else
        to.words_.cold->lose(to.words_, count);
#endif
    }

private:
    [[nodiscard]] static runtime_event& keep(token what, std::string_view name,
                                             std::span<const field> fields) {
        // Never freed: types are registered for good.
        auto* const made = std::make_unique<runtime_event>(what, name, fields).release();
        // relaxed: nobody follows the list, which is there for those who look for leaks
        made->before_ = newest_.exchange(reinterpret_cast<std::uintptr_t>(made), relaxed);
        return *made;
    }
#if !defined(TRACE_RING_DISABLE)
    template <class Kind>
    [[nodiscard]] bool append(basic_recorder<Kind>& to, std::span<const std::uint64_t> payload,
                              bool results, std::uint32_t flags, impl::open_span* span) noexcept {
        const std::uint32_t fixed = !results ? fixed_bytes() : payload.empty() ? 0 : result_bytes_;
        if (payload.size() * 8 < fixed || payload.size() > most_words) return false;
        return impl::append_words(to.words_, state_, {impl::not_begun, impl::stack_position()},
                                  payload.data(), static_cast<std::uint32_t>(payload.size()),
                                  flags | cut_in(payload, results), span);
    }
#endif
    /// The flag of records of which something was cut.
    [[nodiscard]] std::uint32_t cut_in(std::span<const std::uint64_t> payload,
                                       bool results) const noexcept {
        if (payload.empty()) return 0;
        const auto* const bytes = reinterpret_cast<const std::byte*>(payload.data());
        bool cut = false;
        for (const auto& each : fields_) {
            if (each.form != field_form::variable || each.result != results) continue;
            std::uint16_t length = 0;
            __builtin_memcpy(&length, bytes + each.offset, sizeof length);
            cut = cut || (length & variable_cut_bit) != 0;
        }
        return cut ? std::uint32_t{record_word::cut} : 0;
    }
    /// As record/event/names_shape.hpp describes them; empty: there are none.
    [[nodiscard]] static std::vector<std::uint64_t> words_of_names(std::span<const field> fields) {
        std::vector<std::uint64_t> heads, values;
        std::vector<std::size_t> lengths;
        std::string text;
        std::size_t room = most_names_bytes;
        for (std::size_t i = 0; i < fields.size() && room >= 8; ++i) {
            const std::uint64_t begin = values.size();
            const std::size_t before = std::exchange(room, room - 8);
            for (const named_value& each : fields[i].values) {
                const std::size_t bytes = 10 + each.name.size();
                if (each.name.empty() || bytes > room) continue;
                room -= bytes;
                values.push_back(each.value);
                lengths.push_back(each.name.size());
                text += each.name;
            }
            if (values.size() == begin) {
                room = before;
            } else {
                heads.push_back(i | begin << 16 | (values.size() - begin) << 32);
            }
        }
        if (heads.empty()) return {};
        const names_shape shape{heads.size(), values.size(), text.size()};
        std::vector<std::uint64_t> words{shape.head()};
        words.resize(shape.words());
        for (std::size_t i = 0; i < heads.size(); ++i) words[1 + i] = heads[i];
        for (std::size_t i = 0; i < values.size(); ++i) {
            words[shape.values_at() + i] = values[i];
            words[shape.lengths_at() + i / 4] |= std::uint64_t{lengths[i]} << i % 4 * 16;
        }
        __builtin_memcpy(words.data() + shape.text_at(), text.data(), text.size());
        return words;
    }
    [[nodiscard]] type_description described(event_kind kind, std::span<const field> fields) {
        const auto refuse = [this](const std::string& what) {
            throw std::invalid_argument("event '" + name_ + "': " + what);
        };
        if (name_.empty() || name_.size() > most_of_each)
            refuse("its name is 1 to 1,000 bytes long");
        if (fields.size() > most_of_each) refuse("more than 1,000 fields");
        std::uint64_t at = 0, before_results = 0;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const field& one = fields[i];
            if (i == before_results_) before_results = std::exchange(at, 0);
            const std::string called = "field '" + std::string(one.name) + "' ";
            const std::size_t unit = size_of(one.type);
            if (one.name.empty() || one.name.size() > most_of_each)
                refuse("a field's name is 1 to 1,000 bytes long");
            if (unit == 0) refuse(called + "has no type");
            if (one.count == 0) refuse(called + "has no elements");
            if (!one.values.empty() && one.type > field_type::i64)
                refuse(called + "has names of values, and is no whole number");
            for (std::size_t k = 0; k < i; ++k) {
                if (fields[k].name == one.name) refuse(called + "is there twice");
            }
            names_[i] = one.name;
            const bool variable = one.form == field_form::variable;
            const std::size_t alignment = variable ? 2 : unit;
            const std::size_t count = one.form == field_form::array ? one.count : 1;
            at = (at + alignment - 1) / alignment * alignment;
            if (at > most_fixed_bytes) refuse("its fields do not fit into a record");
            fields_[i] = {names_[i],
                          one.type,
                          one.form,
                          static_cast<std::uint16_t>(count),
                          static_cast<std::uint16_t>(at),
                          false,
                          i >= before_results_};
            at += variable ? 2 : unit * count;
        }
        const auto words_of = [](std::uint64_t bytes) {
            return static_cast<std::uint32_t>((bytes + 7) / 8 * 8);
        };
        if (before_results_ < fields.size())
            result_bytes_ = words_of(std::exchange(at, before_results));
        if (words_of(at) > most_fixed_bytes || result_bytes_ > most_fixed_bytes)
            refuse("its fields do not fit into a record");
        return {name_view(name_),
                kind,
                false,
                words_of(at),
                {fields_.data(), fields_.size()},
                {value_names_.data(), value_names_.size()}};
    }

    static constexpr std::uint64_t most_fixed_bytes = 32'000;
    static constexpr std::size_t most_of_each = 1000;
    static constexpr std::size_t most_words = 0xFFFF / 8;

    static inline constinit atomic<std::uintptr_t> newest_{0};
    std::uintptr_t before_ = 0;
    std::string name_;
    std::size_t before_results_;
    std::uint32_t result_bytes_ = 0;
    std::vector<std::string> names_;
    std::vector<field_description> fields_;
    std::vector<std::uint64_t> value_names_;
#if defined(TRACE_RING_DISABLE)
    struct {
        type_description description;
        std::uint32_t ring;
    } state_;
#else
    impl::event_state state_;
#endif
};
#if defined(TRACE_RING_DISABLE)
}
#endif

}  // namespace trace_ring::inline v1
#endif
