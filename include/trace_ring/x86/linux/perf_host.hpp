// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The machine as perf events see it, and the reasons why it has no branch trace store. All access
/// to the machine goes through one object, so that a test can replace it.

#include <trace_ring/x86/enabled.hpp>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <trace_ring/policy/storage/mapping.hpp>

namespace trace_ring::inline v1::x86 {

/// Which condition fails.
enum class perf_reason : std::uint8_t {
    not_intel,             ///< another maker's processor
    ds_missing,            ///< no debug store: flag dts
    no_64_bit_layout,      ///< no DTES64, which Linux needs: flag dtes64
    bts_unavailable,       ///< a debug store without branches: flag bts
    page_table_isolation,  ///< flag pti: the buffers would have to be in both page tables
    no_such_pmu,           ///< the kernel does not offer it, for another reason
    paranoid_level,        ///< perf_event_paranoid is above 1
    no_permission,         ///< it is not above 1, but the kernel refuses
    busy,                  ///< another program uses it, and it cannot be shared
    memory_limit,          ///< more than the user may lock: perf_event_mlock_kb, RLIMIT_MEMLOCK
    other,                 ///< see the error's code
};

/// The reason in words.
[[nodiscard]] constexpr std::string_view to_string(perf_reason reason) noexcept {
    constexpr std::string_view texts[] = {
        "the processor is not Intel's",
        "the processor has no debug store (DS)",
        "the debug store has no 64-bit layout (DTES64)",
        "the debug store stores no branches (BTS is unavailable)",
        "page-table isolation is on, and the kernel then offers no BTS",
        "the kernel offers no such PMU",
        "perf_event_paranoid is above 1, and there is no CAP_PERFMON",
        "no permission",
        "another uses it",
        "more memory than may be locked (perf_event_mlock_kb, RLIMIT_MEMLOCK)",
        "the kernel refuses"};
    return texts[static_cast<std::size_t>(reason)];
}

/// Perf events give no branches here. `what()` names the event and the reason.
class perf_unavailable : public setup_error {
public:
    /// `subject`: what was tried.
    perf_unavailable(const std::string& subject, perf_reason reason, int error)
        : setup_error(subject, std::string(to_string(reason)), error), reason_(reason) {}

    /// Why the kernel refused.
    [[nodiscard]] perf_reason reason() const noexcept { return reason_; }

private:
    perf_reason reason_;
};

/// Access to the machine; by default to this one.
struct perf_host {
    std::string root;  ///< prefix of /proc and /sys
    /// perf_event_open(2): a descriptor, or -1 and errno.
    std::function<int(::perf_event_attr&, ::pid_t, int cpu)> open = [](::perf_event_attr& attr,
                                                                       ::pid_t pid, int cpu) {
        return static_cast<int>(
            ::syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
    };
    /// ioctl(2): PERF_EVENT_IOC_ENABLE and PERF_EVENT_IOC_DISABLE.
    std::function<int(int fd, unsigned long request)> control = [](int fd, unsigned long request) {
        return static_cast<int>(::syscall(SYS_ioctl, fd, request, 0));
    };

    /// A file's text; empty if there is no such file.
    [[nodiscard]] std::optional<std::string> text(const std::string& path) const {
        std::ifstream in(root + path);
        if (!in) return std::nullopt;
        return std::string(std::istreambuf_iterator<char>(in), {});
    }
    /// The number in a file; empty if there is none.
    [[nodiscard]] std::optional<int> number(const std::string& path) const {
        const auto found = text(path);
        int value = 0;
        if (!found ||
            std::from_chars(found->data(), found->data() + found->size(), value).ec != std::errc{})
            return std::nullopt;
        return value;
    }
};

/// Where the kernel has the number of the BTS event type.
inline constexpr const char* intel_bts_type = "/sys/bus/event_source/devices/intel_bts/type";

namespace impl {

/// The value of the first `key : value` line in cpuinfo.
[[nodiscard]] inline std::string_view cpu_line(std::string_view info,
                                               std::string_view key) noexcept {
    while (!info.empty()) {
        const std::string_view line = info.substr(0, info.find('\n'));
        info.remove_prefix((std::min)(info.size(), line.size() + 1));
        if (!line.starts_with(key)) continue;
        const auto behind = line.find_first_not_of(" \t", key.size());
        if (behind != line.npos && line[behind] == ':') return line.substr(behind + 1);
    }
    return {};
}

[[nodiscard]] inline bool has_word(std::string_view line, std::string_view word) noexcept {
    for (auto at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
        const bool begins = at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t';
        const auto end = at + word.size();
        if (begins && (end == line.size() || line[end] == ' ')) return true;
    }
    return false;
}

}  // namespace impl

/// The feature that the processor lacks for a branch trace store, by the kernel's /proc/cpuinfo;
/// empty if it lacks none, or if the file does not show it.
[[nodiscard]] inline std::optional<perf_reason> missing_in_processor(const perf_host& host) {
    const auto info = host.text("/proc/cpuinfo");
    if (!info) return std::nullopt;
    const auto vendor = impl::cpu_line(*info, "vendor_id");
    const auto flags = impl::cpu_line(*info, "flags");
    if (vendor.empty() && flags.empty()) return std::nullopt;
    if (!impl::has_word(vendor, "GenuineIntel")) return perf_reason::not_intel;
    if (!impl::has_word(flags, "dts")) return perf_reason::ds_missing;
    if (!impl::has_word(flags, "dtes64")) return perf_reason::no_64_bit_layout;
    if (!impl::has_word(flags, "bts")) return perf_reason::bts_unavailable;
    return std::nullopt;
}

/// Why there is no intel_bts PMU.
[[nodiscard]] inline perf_reason why_no_bts(const perf_host& host) {
    if (const auto reason = missing_in_processor(host)) return *reason;
    const auto info = host.text("/proc/cpuinfo");
    if (info && impl::has_word(impl::cpu_line(*info, "flags"), "pti")) {
        return perf_reason::page_table_isolation;
    }
    return perf_reason::no_such_pmu;
}

/// Why perf_event_open has failed with `error`.
[[nodiscard]] inline perf_reason why_not_opened(const perf_host& host, int error) {
    switch (error) {
        case EACCES:
        case EPERM: {
            const auto level = host.number("/proc/sys/kernel/perf_event_paranoid");
            return level && *level > 1 ? perf_reason::paranoid_level : perf_reason::no_permission;
        }
        case ENOENT:
        case ENODEV:
        case ENXIO:
        case EOPNOTSUPP:
        case ENOSYS:
            return why_no_bts(host);
        case EBUSY:
            return perf_reason::busy;
        default:
            return perf_reason::other;
    }
}

}  // namespace trace_ring::inline v1::x86
