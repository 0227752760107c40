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

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/record/event.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring::inline v1 {

// Another class where tracing is compiled away, so that files with it and without it can be linked
// into one program.
#if defined(TRACE_RING_DISABLE)
inline namespace disabled {
#endif
class runtime_event {
public:
    struct field {
        std::string_view name;
        field_type type = field_type::u64;
        field_form form = field_form::scalar;
        std::uint16_t count = 1;  ///< of an array's elements
    };

    /// Describes an event. It lives as long as the program, whose recorders have its type from then
    /// on; of a second one with the same name and fields records are of the same type. Any thread;
    /// allocates. Throws std::invalid_argument if a name is empty or longer than 1,000 bytes, if
    /// there are more than 1,000 fields or two of a name, if a type does not exist, or if the
    /// fields do not fit into a record.
    [[nodiscard]] static runtime_event& make(std::string_view name, std::span<const field> fields) {
        // Never freed: types are registered for good.
        auto* const made = std::make_unique<runtime_event>(token{}, name, fields).release();
        // relaxed: nobody follows the list, which is there for those who look for leaks
        made->before_ = newest_.exchange(reinterpret_cast<std::uintptr_t>(made), relaxed);
        return *made;
    }

    /// Where field number `i` begins in the payload: of a variable field, its 16-bit length.
    [[nodiscard]] std::uint32_t offset(std::size_t i) const noexcept { return fields_[i].offset; }
    /// Bytes of the payload before variable data, a multiple of 8.
    [[nodiscard]] std::uint32_t fixed_bytes() const noexcept {
        return state_.description.fixed_bytes;
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
        if (payload.size() * 8 < fixed_bytes() || payload.size() > most_words) return false;
        return impl::append_words(to.words_, state_, {impl::not_begun, impl::stack_position()},
                                  payload.data(), static_cast<std::uint32_t>(payload.size()),
                                  cut_in(payload), nullptr);
#endif
    }

    /// Counts records that whoever told this thread of them has lost: as refused, at this place in
    /// the trace.
    template <class Kind>
    static void lose(basic_recorder<Kind>& to, std::uint32_t count) noexcept {
#if defined(TRACE_RING_DISABLE)
        static_cast<void>(to);
        static_cast<void>(count);
#else
        to.words_.cold->lose(to.words_, count);
#endif
    }

    struct token {};
    /// By `make` alone.
    runtime_event(token, std::string_view name, std::span<const field> fields)
        : name_(name), names_(fields.size()), fields_(fields.size()), state_{described(fields)} {}
    runtime_event(const runtime_event&) = delete;
    runtime_event& operator=(const runtime_event&) = delete;

private:
    /// The flag of records of which something was cut.
    [[nodiscard]] std::uint32_t cut_in(std::span<const std::uint64_t> payload) const noexcept {
        const auto* const bytes = reinterpret_cast<const std::byte*>(payload.data());
        bool cut = false;
        for (const auto& each : fields_) {
            if (each.form != field_form::variable) continue;
            std::uint16_t length = 0;
            __builtin_memcpy(&length, bytes + each.offset, sizeof length);
            cut = cut || (length & variable_cut_bit) != 0;
        }
        return cut ? std::uint32_t{record_word::cut} : 0;
    }
    [[nodiscard]] type_description described(std::span<const field> fields) {
        const auto refuse = [this](const std::string& what) {
            throw std::invalid_argument("event '" + name_ + "': " + what);
        };
        if (name_.empty() || name_.size() > most_of_each)
            refuse("its name is 1 to 1,000 bytes long");
        if (fields.size() > most_of_each) refuse("more than 1,000 fields");
        std::uint64_t at = 0;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const field& one = fields[i];
            const std::string called = "field '" + std::string(one.name) + "' ";
            const std::size_t unit = size_of(one.type);
            if (one.name.empty() || one.name.size() > most_of_each)
                refuse("a field's name is 1 to 1,000 bytes long");
            if (unit == 0) refuse(called + "has no type");
            if (one.count == 0) refuse(called + "has no elements");
            for (std::size_t k = 0; k < i; ++k) {
                if (fields[k].name == one.name) refuse(called + "is there twice");
            }
            names_[i] = one.name;
            const bool variable = one.form == field_form::variable;
            const std::size_t alignment = variable ? 2 : unit;
            const std::size_t count = one.form == field_form::array ? one.count : 1;
            at = (at + alignment - 1) / alignment * alignment;
            if (at > most_fixed_bytes) refuse("its fields do not fit into a record");
            fields_[i] = {names_[i], one.type, one.form, static_cast<std::uint16_t>(count),
                          static_cast<std::uint16_t>(at)};
            at += variable ? 2 : unit * count;
        }
        at = (at + 7) / 8 * 8;
        if (at > most_fixed_bytes) refuse("its fields do not fit into a record");
        return {name_view(name_),
                event_kind::instant,
                false,
                static_cast<std::uint32_t>(at),
                {fields_.data(), fields_.size()}};
    }

    static constexpr std::uint64_t most_fixed_bytes = 32'000;
    static constexpr std::size_t most_of_each = 1000;
    static constexpr std::size_t most_words = 0xFFFF / 8;

    static inline constinit atomic<std::uintptr_t> newest_{0};
    std::uintptr_t before_ = 0;
    std::string name_;
    std::vector<std::string> names_;
    std::vector<field_description> fields_;
#if defined(TRACE_RING_DISABLE)
    struct {
        type_description description;
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
