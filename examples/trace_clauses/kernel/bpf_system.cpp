// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "bpf_system.hpp"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace trace_clauses {

using trace_ring::file_descriptor;

namespace {

[[nodiscard]] long call_bpf(int command, ::bpf_attr& with) noexcept {
    return ::syscall(SYS_bpf, command, &with, sizeof with);
}

}  // namespace

std::string why_refused(int error) {
    switch (error) {
        case EPERM:
        case EACCES:
            return "it is not permitted: it needs the capabilities CAP_BPF and CAP_PERFMON, as "
                   "root has them, and a kernel that is not locked down";
        case ENOSYS:
            return "this kernel does not have it";
        default:
            return std::strerror(error);
    }
}

void refuse(const std::string& what, int error) {
    const std::string text = what + ": " + why_refused(error);
    if (error == EPERM || error == EACCES || error == ENOSYS) throw kernel_refusal(text);
    throw std::runtime_error(text);
}

file_descriptor make_map(std::uint32_t type, std::uint32_t key, std::uint32_t value,
                         std::uint32_t entries, std::uint32_t flags) {
    ::bpf_attr with{};
    with.map_type = type;
    with.key_size = key;
    with.value_size = value;
    with.max_entries = entries;
    with.map_flags = flags;
    const long fd = call_bpf(BPF_MAP_CREATE, with);
    if (fd < 0) refuse("cannot use the kernel's BPF", errno);
    return file_descriptor(static_cast<int>(fd));
}

bool look_up(const file_descriptor& map, const void* key, void* value) {
    ::bpf_attr with{};
    with.map_fd = static_cast<std::uint32_t>(map.get());
    with.key = address_of(key);
    with.value = address_of(value);
    if (call_bpf(BPF_MAP_LOOKUP_ELEM, with) == 0) return true;
    if (errno == ENOENT) return false;
    throw std::runtime_error("cannot read a map of the kernel's BPF: " + why_refused(errno));
}

void set_element(const file_descriptor& map, const void* key, const void* value) {
    ::bpf_attr with{};
    with.map_fd = static_cast<std::uint32_t>(map.get());
    with.key = address_of(key);
    with.value = address_of(value);
    if (call_bpf(BPF_MAP_UPDATE_ELEM, with) != 0)
        throw std::runtime_error("cannot set in a map of the kernel's BPF: " + why_refused(errno));
}

file_descriptor load_program(std::uint32_t type, const bpf_code& code, const std::string& where,
                             std::uint32_t attach_type) {
    if (code.too_far()) {
        throw std::runtime_error(where + ": its clauses are too long for one BPF program");
    }
    constexpr char license[] = "Dual BSD/GPL";  // which some helpers ask for
    ::bpf_attr with{};
    with.prog_type = type;
    with.insns = address_of(code.instructions().data());
    with.insn_cnt = static_cast<std::uint32_t>(code.size());
    with.license = address_of(license);
    with.expected_attach_type = attach_type;
    // A signal, as Ctrl-C, ends the kernel's look at the program with EAGAIN.
    for (int tries = 0; tries < 5; ++tries) {
        const long fd = call_bpf(BPF_PROG_LOAD, with);
        if (fd >= 0) return file_descriptor(static_cast<int>(fd));
        if (errno != EAGAIN) break;
    }
    const int error = errno;
    if (error == EPERM) refuse(where + ": cannot load a program into the kernel", error);
    // Once more, for its reasons: the last lines say what it did not accept.
    std::string reasons(std::size_t{1} << 20, '\0');
    with.log_buf = address_of(reasons.data());
    with.log_size = static_cast<std::uint32_t>(reasons.size());
    with.log_level = 1;
    static_cast<void>(call_bpf(BPF_PROG_LOAD, with));
    reasons.resize(std::strlen(reasons.c_str()));
    if (reasons.size() > 400) reasons = "..." + reasons.substr(reasons.size() - 400);
    throw std::runtime_error(where + ": the kernel does not accept its program: " +
                             std::strerror(error) + "\n" + reasons);
}

std::uint32_t run_here(const file_descriptor& program) {
    ::bpf_attr with{};
    with.test.prog_fd = static_cast<std::uint32_t>(program.get());
    if (call_bpf(BPF_PROG_TEST_RUN, with) != 0)
        throw std::runtime_error("cannot run a program of the kernel's BPF: " + why_refused(errno));
    return with.test.retval;
}

file_descriptor attach_raw(const char* tracepoint, const file_descriptor& program) {
    ::bpf_attr with{};
    with.raw_tracepoint.name = address_of(tracepoint);
    with.raw_tracepoint.prog_fd = static_cast<std::uint32_t>(program.get());
    const long fd = call_bpf(BPF_RAW_TRACEPOINT_OPEN, with);
    if (fd >= 0) return file_descriptor(static_cast<int>(fd));
    throw std::runtime_error(std::string("cannot attach to the kernel's tracepoint ") + tracepoint +
                             ": " + why_refused(errno));
}

}  // namespace trace_clauses
