// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "compiler.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "../../launching/exit_status.hpp"
#include "../../launching/find_program.hpp"
#include "response_files.hpp"

namespace address_trace {
namespace {

namespace fs = std::filesystem;
using launching::path_of_program;

[[nodiscard]] bool is_one_of(std::string_view word, std::span<const std::string_view> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// What the arguments of a compiler request, as far as it matters here.
class request {
public:
    explicit request(std::span<const std::string> arguments) {
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const std::string_view each = arguments[i];
            if (each == "-m32") bits_32 = true;
            if (each.starts_with("-fsanitize=") && is_own_accounts(each)) sanitizer = each;
            if (is_one_of(each, not_linking)) links = false;
            if (each == "-shared" || each == "--shared") is_library = true;
            if (is_one_of(each, not_a_program) || each.starts_with("-print-")) is_program = false;
            if (each.starts_with("-x") && each.size() > 2) language = each.substr(2);
            if (is_one_of(each, with_a_value)) {
                ++i;
                if (each == "-x" && i < arguments.size()) language = arguments[i];
            } else if (!each.starts_with('-') || each == "-") {
                has_input = true;
                only_headers = only_headers && is_header(each);
            }
        }
        // Headers are precompiled, also without -c.
        if (has_input && only_headers) links = false;
    }

    bool links = true;       // the inputs are linked to something executable
    bool is_program = true;  // and that is a regular program
    bool is_library = false;
    bool has_input = false;
    bool bits_32 = false;
    std::string sanitizer{};  // an argument that cannot be combined with tracing

private:
    /// Of sanitizers that keep account of all memory.
    [[nodiscard]] static bool is_own_accounts(std::string_view argument) {
        for (const std::string_view each : {"address", "thread", "memory", "dataflow"}) {
            if (argument.find(each) != argument.npos) return true;
        }
        return false;
    }
    [[nodiscard]] bool is_header(std::string_view input) const {
        // no count: a word of compilers
        if (!language.empty() && language != "none") return language.ends_with("-header");
        const std::size_t dot = input.rfind('.');
        return dot != input.npos && is_one_of(input.substr(dot + 1), headers);
    }

    bool only_headers = true;
    std::string_view language{};  // -x: for the files that follow, overriding their names

    static constexpr std::array<std::string_view, 8> not_linking{
        "-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "--help"};
    static constexpr std::array<std::string_view, 4> not_a_program{"-shared", "--shared", "-r",
                                                                   "-nostdlib"};
    static constexpr std::array<std::string_view, 7> headers{"h",   "hh",  "hp", "hpp",
                                                             "hxx", "h++", "H"};
    static constexpr std::array<std::string_view, 22> with_a_value{
        "-o",       "-I",          "-D",
        "-U",       "-L",          "-l",
        "-x",       "-include",    "-imacros",
        "-iquote",  "-isystem",    "-idirafter",
        "-MF",      "-MT",         "-MQ",
        "-Xlinker", "-T",          "-u",
        "-Xclang",  "-Xassembler", "-Xpreprocessor",
        "-target"};
};

[[nodiscard]] std::string from_environment(const char* name) {
    const char* const set = std::getenv(name);
    return set == nullptr ? "" : set;
}
/// Whether a compiler reports that it is that clang.
[[nodiscard]] bool can_load_pass(const std::string& compiler) {
    std::string quoted = "'";
    for (const char c : compiler) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    std::FILE* const out = ::popen((quoted + "' --version 2>&1").c_str(), "re");
    if (out == nullptr) return false;
    std::string said;
    for (int c = 0; (c = std::fgetc(out)) != EOF;) said += static_cast<char>(c);
    ::pclose(out);
    return said.find("clang version " TRACE_RING_LLVM_VERSION ".") != said.npos;
}

/// The clang of the release that the pass is built for: no other can load it.
[[nodiscard]] std::string find_in_path(const std::string& name, const char* variable) {
    const std::string with_version = name + "-" TRACE_RING_LLVM_VERSION;
    if (!path_of_program(with_version).empty()) return with_version;
    if (!path_of_program(name).empty() && can_load_pass(name)) return name;
    throw std::runtime_error("there is no " + with_version +
                             " on the PATH, and the pass was built for this release of clang "
                             "(Debian: clang-" TRACE_RING_LLVM_VERSION "). " +
                             variable + " may name it");
}

/// A file that is installed with this program.
[[nodiscard]] std::string find_own(const std::string& name) {
    const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
    for (const char* const folder : {".", TRACE_RING_LIBRARY_FOLDER}) {
        const fs::path at = own / folder / name;
        if (fs::exists(at)) return fs::weakly_canonical(at).string();
    }
    throw std::runtime_error(name + " is neither next to this program (" + own.string() +
                             ") nor in " TRACE_RING_LIBRARY_FOLDER);
}

}  // namespace

compiler_settings find_compiler(language of) {
    const bool is_c = of == language::c;
    const char* const variable = is_c ? "ADDRESS_TRACE_CC" : "ADDRESS_TRACE_CXX";
    std::string compiler = from_environment(variable);
    if (compiler.empty()) {
        compiler = find_in_path(is_c ? "clang" : "clang++", variable);
    } else if (!can_load_pass(compiler)) {
        throw std::runtime_error(compiler + " is not clang " TRACE_RING_LLVM_VERSION
                                            ", for which the pass was built");
    }
    return {compiler, find_own("address-trace.o"), find_own("address-trace-pass.so"),
            !from_environment("ADDRESS_TRACE_CALLS").empty()};
}

std::vector<std::string> compiler_command(const compiler_settings& with,
                                          std::span<const std::string> arguments) {
    const std::vector<std::string> all = expand_response_files(arguments);
    const request is(all);
    if (is.bits_32) throw std::runtime_error("-m32: programs of 32 bits are not traced");
    if (!is.sanitizer.empty())
        throw std::runtime_error(
            is.sanitizer +
            ": a sanitizer's own references cannot be distinguished from the program's");
    // First, so that the program's own options take precedence.
    std::vector<std::string> out{with.compiler, "-gline-tables-only", "-gdwarf-aranges",
                                 "-Qunused-arguments", "-fpass-plugin=" + with.pass};
    if (with.calls) out.emplace_back("-finstrument-functions-after-inlining");
    out.insert(out.end(), arguments.begin(), arguments.end());
    if (is.links && is.is_program && is.has_input) {
        // "-x none": the object is an object, even if the program's sources have an explicit
        // language. Libraries that are loaded later find the hooks in the program.
        // no count: a word of compilers
        out.insert(out.end(),
                   {"-x", "none", with.object, "-Wl,--export-dynamic-symbol=__trace_ring_*",
                    "-Wl,--export-dynamic-symbol=__cyg_profile_func_*", "-lstdc++"});
    }
    // A library finds the hooks in the program, even if it is linked with -z defs.
    if (is.links && is.is_library) out.emplace_back("-Wl,--unresolved-symbols=ignore-all");
    return out;
}

int run_compiler(language of, std::span<const std::string> arguments) {
    const std::vector<std::string> command = compiler_command(find_compiler(of), arguments);
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const auto& each : command) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    const int error = errno;
    std::cerr << "address-trace: " << command[0] << ": " << std::strerror(error) << '\n';
    return launching::status_of_exec(error);
}

}  // namespace address_trace
