// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The source of a session's firings: the kernel, or breakpoints by ptrace.
/// @code
///   const auto from = std::make_unique<source_of<kernel_source>>(session, ring_bytes);
///   from->attach(points);
/// @endcode

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../firings/firing_record.hpp"

namespace trace_clauses {

/// The functions are documented in kernel_source.
class source {
public:
    using teller = std::function<void(const firing_record&, std::span<const std::byte>)>;

    source() = default;
    source(const source&) = delete;
    source& operator=(const source&) = delete;
    virtual ~source() = default;

    /// Throws std::runtime_error if this is impossible.
    virtual void follow_children(::pid_t process) = 0;
    /// Returns the points that could not be set.
    [[nodiscard]] virtual std::vector<point_left_out> attach(
        std::span<const planned_point> points) = 0;
    virtual void detach() noexcept = 0;
    virtual void wait(int milliseconds) = 0;
    virtual void read(const teller& tell) = 0;
    [[nodiscard]] virtual clause_counts counts(std::uint32_t clause) const = 0;
    [[nodiscard]] virtual bool may_miss_returns() const noexcept = 0;

    /// Returns whether it waits for the traced processes: then no other code may do so.
    [[nodiscard]] virtual bool waits_for_processes() const noexcept = 0;
    /// The exit status of a process in the form of waitpid(2); empty while it runs.
    [[nodiscard]] virtual std::optional<int> status_of(::pid_t process) const = 0;
};

/// `From`: kernel_source or ptrace_source.
template <class From>
class source_of final : public source {
public:
    template <class... Arguments>
    explicit source_of(Arguments&&... arguments) : from_(std::forward<Arguments>(arguments)...) {}

    void follow_children([[maybe_unused]] ::pid_t process) override {
        if constexpr (waits) {
            throw std::runtime_error("forked processes can only be traced by the kernel's BPF");
        } else {
            from_.follow_children(process);
        }
    }
    [[nodiscard]] std::vector<point_left_out> attach(
        std::span<const planned_point> points) override {
        if constexpr (!waits) return from_.attach(points);
        if constexpr (waits) {
            for (const planned_point& each : points)
                from_.attach(each.at, each.clauses, each.entry);
            // When the caller reports the points as set, they must be set.
            from_.set_points();
        }
        return {};
    }
    void detach() noexcept override { from_.detach(); }
    void wait(int milliseconds) override { from_.wait(milliseconds); }
    void read(const teller& tell) override { from_.read(tell); }
    [[nodiscard]] clause_counts counts(std::uint32_t clause) const override {
        return from_.counts(clause);
    }
    [[nodiscard]] bool may_miss_returns() const noexcept override {
        if constexpr (waits)
            return false;
        else
            return from_.may_miss_returns();
    }
    [[nodiscard]] bool waits_for_processes() const noexcept override { return waits; }
    [[nodiscard]] std::optional<int> status_of(::pid_t process) const override {
        if constexpr (waits) return from_.status_of(process);
        return std::nullopt;
    }

private:
    static constexpr bool waits = requires(const From& from, ::pid_t process) {
        from.status_of(process);
    };

    From from_;
};

}  // namespace trace_clauses
