// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How set-up fails: it throws `setup_error`. A program that is compiled without exceptions
/// (-fno-exceptions) has a handler called instead. A recorder may also be told to record nothing if
/// it cannot be set up, so that no service dies because of its trace: recorder_options::on_failure.
/// @code
///   try {
///       trace_ring::recorder recorder{{.file = "orders.trace"}};
///   } catch (const trace_ring::setup_error& error) {
///       std::cerr << error.what() << '\n';
///   }
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1 {

/// Set-up failed. `what()` names the file (or the argument), what was tried, and why it failed.
class setup_error : public std::system_error {
public:
    /// `subject`: a file or an argument. `error`: an errno value.
    [[gnu::cold, gnu::noinline]] setup_error(std::string_view subject, std::string_view attempt,
                                             int error)
        : std::system_error(std::error_code(error, std::generic_category())), subject_(subject) {
        // Sized and filled: joining strings compiles four times as much.
        const std::string cause = code().message();
        const std::string_view parts[] = {subject, ": ", attempt, ": ", cause};
        std::size_t size = 0;
        for (const std::string_view part : parts) size += part.size();
        text_ = std::string(size, ' ');
        char* to = text_.data();
        for (const std::string_view part : parts) {
            if (!part.empty()) std::memcpy(to, part.data(), part.size());
            to += part.size();
        }
    }
    /// The whole message: subject, attempt and cause.
    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

    /// The file or argument at fault.
    [[nodiscard]] const std::string& subject() const noexcept { return subject_; }

private:
    std::string subject_;
    std::string text_{};
};

/// Called with the error, on the thread that sets up. It must not return: it ends the program or
/// the thread, or leaves by longjmp. No unfinished file and no lock is then left behind, but memory
/// and descriptors are not given back. It may use the library, and fail again.
using setup_handler = void (*)(const setup_error& error);

namespace impl {
inline constinit atomic_pointer<void(const setup_error&)> the_setup_handler{nullptr};

/// For one thread at a time: where its set-ups continue if they fail, and not with the handler. A
/// recorder that is to record nothing then (recorder/no_recording.hpp) takes it.
struct setup_detour {
    atomic<std::uint32_t> thread{0};  ///< its number in the kernel; 0: none
    void (*leave)(const setup_error& error) = nullptr;
};
inline constinit setup_detour the_detour{};
}  // namespace impl

/// From now on every set-up of the program that fails calls `handler`; returns the handler before.
/// Null, as it is at first: set-up throws if any part of the program is compiled with exceptions,
/// else it writes the text to stderr and aborts, as it does if a handler returns. Any thread.
inline setup_handler set_setup_handler(setup_handler handler) noexcept {
    // order: setup.handler:A pairs with setup.handler:A, setup.fail:A
    return impl::the_setup_handler.exchange(handler, acq_rel);
}

namespace impl {

#if defined(__cpp_exceptions)
#if !defined(TRACE_RING_DISABLE)
[[gnu::used]]  // by the parts of the program that are compiled without exceptions
#endif
[[noreturn]] inline void
throw_setup_error(const setup_error& error) {
    throw error;
}
#else
/// Null if no part of the program has exceptions.
[[noreturn, gnu::weak]] void throw_setup_error(const setup_error& error);
#endif

}  // namespace impl

/// A step of set-up that failed, until what it began is undone: set-up need not end where a step
/// fails. Plain data, no memory. Empty: nothing failed.
class setup_fault {
public:
    setup_fault() noexcept = default;
    /// What was tried, as printf takes it, in up to 200 bytes.
    [[gnu::cold, gnu::noinline,
      gnu::format(printf, 3, 4)]] setup_fault(int error, const char* attempt, ...) noexcept
        : error_(error) {
        va_list values;
        va_start(values, attempt);
        std::vsnprintf(attempt_, sizeof attempt_, attempt, values);
        va_end(values);
    }
    /// Whether something failed.
    [[nodiscard]] explicit operator bool() const noexcept { return error_ != 0; }
    [[nodiscard]] int error() const noexcept { return error_; }              ///< the errno value
    [[nodiscard]] const char* attempt() const noexcept { return attempt_; }  ///< what was tried

private:
    int error_ = 0;
    char attempt_[200];
};

/// What is wrong in a file, and where.
[[nodiscard]] inline setup_fault fault_at(std::uint64_t offset, std::string_view what) noexcept {
    return {EINVAL, "offset %" PRIu64 ": %.*s", offset, static_cast<int>(what.size()), what.data()};
}

/// Ends a set-up that failed; for your own policies, too.
[[noreturn]] inline void fail_setup(const setup_error& error) {
    // relaxed: nobody else stores this thread's number, or `leave` while it is there
    const std::uint32_t detour = impl::the_detour.thread.load(relaxed);
    if (detour != 0 && detour == static_cast<std::uint32_t>(::syscall(SYS_gettid)))
        impl::the_detour.leave(error);
    // order: setup.fail:A pairs with setup.handler:A
    if (const setup_handler handler = impl::the_setup_handler.load(acquire)) handler(error);
#if defined(__cpp_exceptions)
    impl::throw_setup_error(error);
#else
    if (&impl::throw_setup_error != nullptr) impl::throw_setup_error(error);
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
#endif
}
/// Fails with a setup_error made of these.
[[noreturn, gnu::cold, gnu::noinline]] inline void fail_setup(std::string_view subject,
                                                              std::string_view attempt, int error) {
    fail_setup(setup_error(subject, attempt, error));
}
/// Ends set-up if a step of it failed; the caller has undone before what it must.
inline void fail_setup(std::string_view subject, const setup_fault& fault) {
    if (fault) fail_setup(subject, fault.attempt(), fault.error());
}
/// Fails as operator new does: by std::bad_alloc where there are exceptions.
[[noreturn]] inline void fail_memory(std::string_view subject, std::uint64_t bytes) {
#if defined(__cpp_exceptions)
    static_cast<void>(subject);
    static_cast<void>(bytes);
    throw std::bad_alloc();
#else
    const setup_fault fault(ENOMEM, "cannot allocate %" PRIu64 " bytes", bytes);
    fail_setup(subject, fault.attempt(), fault.error());
#endif
}

}  // namespace trace_ring::inline v1

#endif
