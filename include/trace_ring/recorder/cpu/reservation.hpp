// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What `reserve` of a recorder with a lane for each processor returns. Other threads of the
/// processor may write records before it is committed, so it cannot be filled in place: it holds
/// the record itself.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/recorder/site/event_type.hpp>
#include <trace_ring/recorder/site/hot_path.hpp>

namespace trace_ring::inline v1 {

/// A record that has been filled and is not published yet. Move-only; any thread may commit it.
template <class Recorder, recordable E>
class cpu_reservation {
public:
    cpu_reservation() noexcept = default;
    cpu_reservation(cpu_reservation&& other) noexcept { take(other); }
    cpu_reservation& operator=(cpu_reservation&& other) noexcept {
        if (this != &other) take(other);
        return *this;
    }

    [[nodiscard]] explicit operator bool() const noexcept { return owner_ != nullptr; }

    /// Publishes the record, with the time of this call. False: there was none, or it was lost and
    /// counted.
    bool commit() noexcept {
        Recorder* const owner = std::exchange(owner_, nullptr);
        if (owner == nullptr) return false;
        return owner->write_words(impl::event_of<E>::state, header_, words_, count_,
                                  impl::is_counted<E>(), nullptr);
    }
    /// Gives the record up: no reader will see anything of it.
    void discard() noexcept { owner_ = nullptr; }

private:
    friend Recorder;

    // Not inlined: the record is copied one more time anyway.
    template <class... Values>
    [[gnu::noinline]] explicit cpu_reservation(Recorder& owner, const Values&... values) noexcept {
        std::uint32_t header = owner.template header_of<E>(impl::event_type<E>());
        if (!owner.passes(header)) return;
        const std::uint32_t room = sizeof words_;
        const std::uint32_t most = owner.max_record() < room ? owner.max_record() : room;
        E::given::convert(
            [&](const auto&... stored) {
                const impl::fields_record<typename E::signature> record(stored...);
                const auto sizes = record.measure(most);
                const impl::record_size of = record.size(sizes);
                header_ = header + of.header;
                count_ = static_cast<std::uint32_t>((of.bytes - record_header_bytes) / 8);
                record.store(reinterpret_cast<std::byte*>(words_), sizes);
            },
            values...);
        owner_ = &owner;
    }
    void take(cpu_reservation& other) noexcept {
        owner_ = std::exchange(other.owner_, nullptr);
        header_ = other.header_;
        count_ = other.count_;
        for (std::uint32_t i = 0; owner_ != nullptr && i < count_; ++i) words_[i] = other.words_[i];
    }

    /// Variable fields: what a sub-buffer of the usual size can hold.
    static constexpr std::size_t most_words =
        E::fixed_bytes / 8 + (E::signature::variable ? default_sub_buffer_bytes / 8 : 0);

    Recorder* owner_ = nullptr;
    std::uint32_t header_ = 0;
    std::uint32_t count_ = 0;
    std::uint64_t words_[most_words + 1];
};

}  // namespace trace_ring::inline v1
