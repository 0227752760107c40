// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "stack_unwinder.hpp"

#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "../firings/stack_snapshot.hpp"
#include "kernel_code.hpp"

namespace trace_clauses {
namespace {

/// Debug information comes from the file alone, never from a server.
int find_no_other_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                       GElf_Word, char**) {
    return -1;
}
int find_no_elf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, ::Elf**) {
    return -1;
}

/// Only 64-bit programs have that register.
[[nodiscard]] bool is_wide(const stack_snapshot& of) noexcept {
    constexpr std::size_t rip = 16;
    return of.registers[rip] != 0;
}

const Dwfl_Callbacks callbacks{&find_no_elf, &find_no_other_file, nullptr, nullptr};

}  // namespace

/// The code of a process, between two changes of it.
class stack_unwinder::program {
public:
    program(::pid_t process, std::uint64_t changes) noexcept
        : changes_(changes), process_(process), dwfl_(::dwfl_begin(&callbacks)) {
        if (dwfl_ != nullptr) ::dwfl_report_begin(dwfl_);
    }
    /// At its place in memory. A file that cannot be read provides no information.
    void add(const symbols::loaded_module& code, int file) noexcept {
        const int own = dwfl_ == nullptr ? -1 : ::dup(file);
        if (own < 0) return;
        if (::dwfl_report_elf(dwfl_, code.path.c_str(), code.path.c_str(), own, code.bias, true) ==
            nullptr)
            ::close(own);
    }
    /// All code is added.
    void complete() noexcept {
        if (dwfl_ == nullptr) return;
        ::dwfl_report_end(dwfl_, nullptr, nullptr);
        static constexpr Dwfl_Thread_Callbacks of_threads{&next_thread,   &get_thread, &read_memory,
                                                          &set_registers, nullptr,     nullptr};
        is_attached_ = ::dwfl_attach_state(dwfl_, nullptr, process_, &of_threads, this);
    }
    program(const program&) = delete;
    program& operator=(const program&) = delete;
    ~program() {
        if (dwfl_ != nullptr) ::dwfl_end(dwfl_);
    }

    [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
    struct result {
        std::size_t count = 0;
        bool is_cut = false;       ///< the copy of the stack ended
        bool ended_early = false;  ///< unwind information ended
    };
    [[nodiscard]] result unwind(const stack_snapshot& of, std::span<const std::byte> stack,
                                std::span<std::uint64_t> into) {
        if (!is_attached_ || into.empty()) return {};
        of_ = &of;
        stack_ = stack;
        into_ = into;
        count_ = 0;
        leaves_out_ = of.has_place == 0 ? 1 : 0;
        is_cut_ = false;
        is_unknown_ = false;
        const int ended = ::dwfl_getthread_frames(dwfl_, process_, &add_frame, this);
        const bool has_room = count_ < into.size();
        return {count_, is_cut_ && has_room, (ended == -1 || is_unknown_) && !is_cut_ && has_room};
    }

private:
    [[nodiscard]] std::uint64_t stack_pointer() const noexcept {
        constexpr std::size_t rsp = 7, esp = 4;
        return of_->registers[is_wide(*of_) ? rsp : esp];
    }

    // One thread, whose number is the process's.
    static ::pid_t next_thread(Dwfl*, void* of, void** thread) {
        if (*thread != nullptr) return 0;
        *thread = of;
        return static_cast<program*>(of)->process_;
    }
    static bool get_thread(Dwfl*, ::pid_t, void* of, void** thread) {
        *thread = of;
        return true;
    }
    static bool read_memory(Dwfl*, Dwarf_Addr at, Dwarf_Word* into, void* of) {
        program& self = *static_cast<program*>(of);
        const std::size_t bytes = is_wide(*self.of_) ? 8 : 4;
        const std::uint64_t offset = at - self.stack_pointer();
        if (offset > self.stack_.size() || self.stack_.size() - offset < bytes) {
            // Also if it continues on another stack, from which a signal handler's was entered.
            self.is_cut_ = true;
            return false;
        }
        *into = 0;
        std::memcpy(into, self.stack_.data() + offset, bytes);
        return true;
    }
    static bool set_registers(Dwfl_Thread* thread, void* of) {
        const program& self = *static_cast<program*>(of);
        constexpr unsigned of_64 = 17, of_32 = 9;
        return ::dwfl_thread_state_registers(thread, 0, is_wide(*self.of_) ? of_64 : of_32,
                                             self.of_->registers.data());
    }
    static int add_frame(Dwfl_Frame* frame, void* of) {
        program& self = *static_cast<program*>(of);
        Dwarf_Addr at = 0;
        bool is_interrupted = false;
        if (!::dwfl_frame_pc(frame, &at, &is_interrupted)) return -1;
        if (self.leaves_out_ != 0) {
            --self.leaves_out_;
        } else {
            self.into_[self.count_++] = at;
            if (self.count_ == self.into_.size()) return DWARF_CB_ABORT;
        }
        // Without a rule, libdwfl would follow the frame pointer, which may have any value.
        self.is_unknown_ = !self.has_rule(is_interrupted ? at : at - 1);
        return self.is_unknown_ ? DWARF_CB_ABORT : DWARF_CB_OK;
    }
    /// Returns whether unwind information covers the instruction.
    [[nodiscard]] bool has_rule(Dwarf_Addr at) const {
        Dwfl_Module* const in = ::dwfl_addrmodule(dwfl_, at);
        if (in == nullptr) return false;
        for (const auto find : {&::dwfl_module_eh_cfi, &::dwfl_module_dwarf_cfi}) {
            Dwarf_Addr bias = 0;
            Dwarf_CFI* const rules = find(in, &bias);
            Dwarf_Frame* rule = nullptr;
            if (rules == nullptr || ::dwarf_cfi_addrframe(rules, at - bias, &rule) != 0) continue;
            std::free(rule);
            return true;
        }
        return false;
    }

    std::uint64_t changes_;
    ::pid_t process_;
    Dwfl* dwfl_;
    bool is_attached_ = false;
    // The stack that is being unwound.
    const stack_snapshot* of_ = nullptr;
    std::span<const std::byte> stack_;
    std::span<std::uint64_t> into_;
    std::size_t count_ = 0;
    unsigned leaves_out_ = 0;
    bool is_cut_ = false;
    bool is_unknown_ = false;
};

stack_unwinder::stack_unwinder(loaded_code& code) : code_(code) {}
stack_unwinder::~stack_unwinder() = default;

std::size_t stack_unwinder::unwind(::pid_t process, std::uint64_t time,
                                   std::span<const std::byte> snapshot,
                                   std::span<std::uint64_t> into) {
    stack_snapshot of;
    if (snapshot.size() < sizeof of) return 0;
    std::memcpy(&of, snapshot.data(), sizeof of);
    const auto rest = snapshot.subspan(sizeof of);
    const auto stack = rest.first(std::min<std::size_t>(of.bytes, rest.size()));
    const std::uint64_t changes = code_.changes_of(process, time);
    auto& in = programs_[process];
    if (in == nullptr || in->changes() != changes) {
        constexpr std::size_t most = 64;
        if (programs_.size() > most)
            std::erase_if(programs_, [&](const auto& each) { return each.first != process; });
        in = std::make_unique<program>(process, changes);
        const auto mode = is_wide(of) ? program_mode::lp64 : program_mode::ilp32;
        for (const auto& each : code_.modules_of(process, time)) {
            const bool is_kernel = each.module.path == kernel_code;
            const int file = is_kernel ? kernel_code_of(mode) : each.file.get();
            if (file >= 0) in->add(each.module, file);
        }
        in->complete();
    }
    const auto found = in->unwind(of, stack, into);
    cut_ += found.is_cut ? 1 : 0;
    ended_early_ += found.ended_early ? 1 : 0;
    return found.count;
}

int stack_unwinder::kernel_code_of(trace_ring::record::program_mode mode) {
    const auto [known, is_new] = kernel_code_.try_emplace(mode);
    if (is_new) known->second = kernel_code_image(mode);
    return known->second.get();
}

}  // namespace trace_clauses
