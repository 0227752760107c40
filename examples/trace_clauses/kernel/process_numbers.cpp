// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "process_numbers.hpp"

#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

#include "bpf_system.hpp"
#include "kernel_types.hpp"

namespace trace_clauses {
namespace {

/// Reads the given number of bytes into r3, from `offset` after the kernel address in r3.
void read_kernel(bpf_code& code, int scratch, std::int32_t offset, std::int32_t bytes) {
    code.compute(BPF_ADD, bpf::r3, offset);
    code.store(bpf::r10, scratch, 0);
    code.move(bpf::r1, bpf::r10);
    code.compute(BPF_ADD, bpf::r1, scratch);
    code.move(bpf::r2, bytes);
    code.call(BPF_FUNC_probe_read_kernel);
    code.load(bpf::r3, bpf::r10, scratch);
}

/// The offsets needed to find a process number of another namespace.
struct pid_layout {
    std::int32_t leader = offset_in_kernel("task_struct", "group_leader");
    std::int32_t of_thread = offset_in_kernel("task_struct", "thread_pid");
    std::int32_t level = offset_in_kernel("pid", "level");
    std::int32_t numbers = offset_in_kernel("pid", "numbers");  // array of struct upid, outermost
                                                                // namespace first
    std::int32_t space_of_number = offset_in_kernel("upid", "ns");
    std::int32_t inode =
        offset_in_kernel("pid_namespace", "ns") + offset_in_kernel("ns_common", "inum");
    static constexpr std::int32_t each_number = 16;  // a number and a pointer
};

/// The PID namespace of this process.
struct own_space {
    bool is_first = true;
    std::uint64_t device = 0;  // the device number of its file, in the kernel's encoding
    std::uint64_t inode = 0;
    // How to find numbers in the namespace, and how many namespaces are above it. Set if the kernel
    // describes its structures and runs the program that looks.
    std::optional<pid_layout> layout{};
    std::int32_t level = 0;
};

[[nodiscard]] own_space look() {
    constexpr ::ino_t first = 0xEFFFFFFC;
    need_own_proc();
    struct stat status {};
    if (::stat("/proc/self/ns/pid", &status) != 0) refuse("/proc/self/ns/pid", errno);
    own_space found;
    found.is_first = status.st_ino == first;
    if (found.is_first) return found;
    found.device =
        (std::uint64_t{gnu_dev_major(status.st_dev)} << 20U) | gnu_dev_minor(status.st_dev);
    found.inode = status.st_ino;
    try {
        pid_layout layout;
        bpf_code code;
        code.call(BPF_FUNC_get_current_task);
        code.move(bpf::r3, bpf::r0);
        read_kernel(code, -8, layout.of_thread, 8);
        read_kernel(code, -8, layout.level, 4);
        code.move(bpf::r0, bpf::r3);
        code.exit();
        found.level = static_cast<std::int32_t>(
            run_here(load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, code, "the PID namespace")));
        found.layout = layout;
    } catch (const kernel_refusal&) {
        throw;
    } catch (const std::runtime_error&) {
        // Processes of this namespace have numbers in any case.
    }
    return found;
}
[[nodiscard]] const own_space& here() {
    static const own_space known = look();
    return known;
}

/// Loads the number of the struct pid at r3, in our namespace, into r0. Uses r9.
void number_of(bpf_code& code, const own_space& in, int scratch) {
    const pid_layout& layout = *in.layout;
    const std::int32_t at = layout.numbers + in.level * pid_layout::each_number;
    code.move(bpf::r9, bpf::r3);
    read_kernel(code, scratch, layout.level, 4);
    const std::size_t above = code.jump_if(BPF_JLT, bpf::r3, in.level);
    code.move(bpf::r3, bpf::r9);
    read_kernel(code, scratch, at + layout.space_of_number, 8);
    read_kernel(code, scratch, layout.inode, 4);
    code.compute(BPF_XOR, bpf::r3, static_cast<std::int32_t>(in.inode));
    code.move_low(bpf::r3, bpf::r3);
    const std::size_t beside = code.jump_if(BPF_JNE, bpf::r3, 0);
    code.move(bpf::r3, bpf::r9);
    read_kernel(code, scratch, at, 4);
    code.move(bpf::r0, bpf::r3);
    const std::size_t found = code.jump();
    code.here(above);
    code.here(beside);
    code.move(bpf::r0, 0);
    code.here(found);
}

}  // namespace

void need_own_proc() {
    std::array<char, 32> self{};
    if (::readlink("/proc/self", self.data(), self.size() - 1) < 0)
        throw std::runtime_error(std::string("cannot read /proc: ") + std::strerror(errno));
    if (self.data() == std::to_string(::getpid())) return;
    throw std::runtime_error(
        "/proc belongs to another PID namespace and numbers processes differently: mount one of "
        "this namespace (mount -t proc proc /proc, or unshare --mount-proc)");
}
bool in_pid_namespace() {
    return !here().is_first;
}

void current_numbers(bpf_code& code, int scratch) {
    const own_space& in = here();
    if (in.is_first) return code.call(BPF_FUNC_get_current_pid_tgid);
    const auto wide = [&code](bpf::reg into, std::uint64_t value) {
        code.move(into, static_cast<std::int32_t>(value));
        code.move_low(into, into);  // the 32 bits are not a signed number
    };
    code.store(bpf::r10, scratch, 0);
    wide(bpf::r1, in.device);
    wide(bpf::r2, in.inode);
    code.move(bpf::r3, bpf::r10);
    code.compute(BPF_ADD, bpf::r3, scratch);
    code.move(bpf::r4, 8);
    code.call(BPF_FUNC_get_ns_current_pid_tgid);
    const std::size_t elsewhere = code.jump_if(BPF_JNE, bpf::r0, 0);
    code.load(bpf::r0, bpf::r10, scratch);
    const std::size_t found = code.jump();
    code.here(elsewhere);
    if (in.layout) {
        code.call(BPF_FUNC_get_current_task);
        code.move(bpf::r8, bpf::r0);
        code.move(bpf::r3, bpf::r8);
        read_kernel(code, scratch, in.layout->of_thread, 8);
        number_of(code, in, scratch);
        code.store(bpf::r10, scratch + 8, bpf::r0);
        code.move(bpf::r3, bpf::r8);
        process_number(code, scratch);
        code.compute(BPF_LSH, bpf::r0, 32);
        code.load(bpf::r1, bpf::r10, scratch + 8);
        code.compute(BPF_OR, bpf::r0, bpf::r1);
    } else {
        code.move(bpf::r0, 0);
    }
    code.here(found);
}

void process_number(bpf_code& code, int scratch) {
    const own_space& in = here();
    if (in.is_first) {
        read_kernel(code, scratch, offset_in_kernel("task_struct", "tgid"), 4);
        return code.move(bpf::r0, bpf::r3);
    }
    if (!in.layout) {
        static_cast<void>(pid_layout());  // throws if something is missing
        throw std::runtime_error(
            "in a PID namespace, the numbers of other processes need a kernel that runs a BPF "
            "program once (Linux 5.10)");
    }
    read_kernel(code, scratch, in.layout->leader, 8);
    read_kernel(code, scratch, in.layout->of_thread, 8);
    number_of(code, in, scratch);
}

}  // namespace trace_clauses
