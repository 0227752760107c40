// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Records spans: `recorder.scope<E>(values...)` and the object that it returns. recorder.hpp and
/// trace_ring.hpp include it; a file that includes site.hpp alone and records spans includes it,
/// too.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <trace_ring/record/event/span.hpp>
#include <trace_ring/recorder/site.hpp>

#if defined(TRACE_RING_DISABLE)
namespace trace_ring::inline v1::inline disabled::nothing {

template <class E>
class scoped {
public:
    constexpr scoped() noexcept = default;
    scoped(scoped&&) noexcept = default;
    scoped& operator=(scoped&&) = delete;
    ~scoped() {}  // not trivial, or a scope would be an unused variable
    template <class... Results>
    bool end(const Results&...) noexcept {
        static_assert(impl::takes_results<E, Results...>());
        return false;
    }
};

}  // namespace trace_ring::inline v1::inline disabled::nothing
#else

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/recorder/site/hot_path.hpp>
#include <trace_ring/recorder/site/open_span.hpp>

namespace trace_ring::inline v1 {

namespace impl {

/// What the results of a span may take, with a header: an end may have to say where it began.
[[nodiscard]] constexpr std::uint32_t most_result_bytes(std::uint32_t max_record) noexcept {
    return max_record - std::uint32_t{layout::span_end_record::bytes - record_header_bytes};
}

/// The first record of a span, as `append` takes it.
struct span_begin {
    static constexpr std::uint32_t flags = record_word::begin;
    open_span& span;

    [[nodiscard]] static std::uint32_t most_bytes(std::uint32_t max_record) noexcept {
        return max_record;
    }
    [[nodiscard]] static bool may_be_here(const lane_mark&, const sub_buffer_header&) noexcept {
        return true;
    }
    [[nodiscard]] static std::uint32_t header(std::uint32_t of_type, std::uint32_t) noexcept {
        return of_type;
    }
    void before_commit(lane_mark& mark, const sub_buffer_header& sub) const noexcept {
        span.begin(mark, sub);
    }
    static void after_commit(lane_mark&) noexcept {}
    template <std::size_t Count>
    [[nodiscard, gnu::always_inline]] bool go_cold(const words_record<Count>& record,
                                                   recorder_words& to, event_state& type,
                                                   mark_type idle) const noexcept {
        return append_words(to, type, {idle, stack_position()}, record.word, Count, flags, &span);
    }
    template <class Signature>
    [[nodiscard, gnu::always_inline]] bool go_cold(const fields_record<Signature>& record,
                                                   recorder_words& to, event_state& type,
                                                   mark_type idle) const noexcept {
        return record.template append_open<flags>(to, type, {idle, stack_position()}, &span,
                                                  record);
    }
};

/// The last record of a span: its results. It is written even if the gate has been shut since the
/// span began, or the span would never end.
struct span_end {
    static constexpr std::uint32_t flags = record_word::end;
    open_span& span;

    [[nodiscard]] static std::uint32_t most_bytes(std::uint32_t max_record) noexcept {
        return most_result_bytes(max_record);
    }
    [[nodiscard]] bool may_be_here(const lane_mark& mark,
                                   const sub_buffer_header& sub) const noexcept {
        return span.is_innermost(mark, sub);
    }
    [[nodiscard]] static std::uint32_t header(std::uint32_t of_type,
                                              std::uint32_t fixed_bytes) noexcept {
        return record_word::pack(record_word::id(of_type), record_header_bytes + fixed_bytes);
    }
    static void before_commit(lane_mark&, const sub_buffer_header&) noexcept {}
    void after_commit(lane_mark& mark) const noexcept { span.end(mark); }
    template <std::size_t Count>
    [[nodiscard, gnu::always_inline]] bool go_cold(const words_record<Count>& record,
                                                   recorder_words& to, event_state& type,
                                                   mark_type idle) const noexcept {
        return append_words(to, type, {idle, stack_position()}, record.word, Count, flags, &span);
    }
    template <class Signature>
    [[nodiscard, gnu::always_inline]] bool go_cold(const fields_record<Signature>& record,
                                                   recorder_words& to, event_state& type,
                                                   mark_type idle) const noexcept {
        return append_staged(to, type, {idle, stack_position()}, &span, record);
    }

private:
    /// Only the cold path knows whether the results come behind the place where the span began.
    template <class Signature>
    [[gnu::noinline, gnu::cold]] static bool append_staged(
        recorder_words& to, event_state& type, left_at where, open_span* span,
        fields_record<Signature> record) noexcept {
        const auto sizes = record.measure(most_bytes(to.max_record));
        const record_size of = record.size(sizes);
        const std::uint32_t bytes = of.bytes - std::uint32_t{record_header_bytes};
        auto* const words = static_cast<std::uint64_t*>(__builtin_alloca(bytes + 8));
        record.store(reinterpret_cast<std::byte*>(words), sizes);
        return append_words(to, type, where, words, bytes / 8, flags | of.header >> 28, span);
    }
};

/// Writes the first or the last record of a span, with the values that it is called with. A
/// function, because a span costs its two records less often than an event is recorded.
template <class Clock, std::uint32_t Ring, bool Counted, class Span>
struct append_span {
    recorder_words& to;
    event_state& type;
    Span span;

    template <class... T>
    [[gnu::noinline]] bool operator()(const T&... values) const noexcept {
        return append<Clock, Ring, Counted>(to, type, record_of(values...), span);
    }
};

}  // namespace impl

/// An open span, whose end is recorded by `end`, or else when this is destroyed. Move-only, also to
/// other threads.
template <class Recorder, recordable E>
class open_scope {
public:
    /// The other one is no span afterwards.
    open_scope(open_scope&& other) noexcept : owner_(other.owner_) {
        other.owner_ = nullptr;
        if (owner_ != nullptr) span_ = other.span_;
    }
    open_scope& operator=(open_scope&&) = delete;
    open_scope(const open_scope&) = delete;
    open_scope& operator=(const open_scope&) = delete;
    ~open_scope() {
        if (owner_ != nullptr) owner_->template put_end<E>(span_);
    }

    /// Records the end now, with the span's results: one value for each field in its `results`,
    /// and none if it has no such list. From then on there is nothing to end: a second call records
    /// nothing, and neither does the destructor. False: the span has ended, or its begin was not
    /// recorded, or the end was lost and counted. Texts and rows are cut to fit, as in `record`.
    /// Signal-safe; constant time for fixed fields, linear in the bytes of variable ones.
    template <class... Results>
    [[gnu::always_inline]] bool end(const Results&... values) noexcept {
        if constexpr (impl::takes_results<E, Results...>()) {
            Recorder* const owner = owner_;
            owner_ = nullptr;
            return owner != nullptr && owner->template put_end<E>(span_, values...);
        } else {
            return false;
        }
    }

private:
    friend Recorder;

    template <class... Values>
    [[gnu::always_inline]] explicit open_scope(Recorder& owner, const Values&... values) noexcept
        : owner_(owner.template put_begin<E>(span_, values...) ? &owner : nullptr) {}

    union {
        impl::open_span span_;  // set if there is an owner
    };
    Recorder* owner_;
};

}  // namespace trace_ring::inline v1

#endif

#endif
