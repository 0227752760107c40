// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "candidates.hpp"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <trace_ring/setup_error.hpp>

#include "../../counted.hpp"
#include "../../launching/find_program.hpp"
#include "../../launching/process_memory.hpp"
#include "program_file.hpp"

namespace trace_clauses {
namespace {

namespace fs = std::filesystem;
using launching::folders_of;
using launching::is_file;
using launching::path_of_program;

/// Reads ld.so's cache: files by name, for both modes.
[[nodiscard]] std::multimap<std::string, std::string> read_cache() {
    std::multimap<std::string, std::string> all;
    std::FILE* const pipe =
        ::popen("LC_ALL=C PATH=/sbin:/usr/sbin:$PATH ldconfig -p 2> /dev/null", "re");
    if (pipe == nullptr) return all;
    char line[8192];
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
        // "	libc.so.6 (libc6,x86-64) => /lib/x86_64-linux-gnu/libc.so.6"
        const std::string_view text(line, std::strcspn(line, "\n"));
        const std::size_t kind = text.find(" (");
        const std::size_t arrow = text.find(") => ");
        if (!text.starts_with('\t') || kind == text.npos || arrow == text.npos) continue;
        // The cache also lists variants for newer processors. The loader decides which one it uses.
        if (text.substr(kind, arrow - kind).find("hwcap") != text.npos) continue;
        all.emplace(text.substr(1, kind - 1), text.substr(arrow + 5));
    }
    ::pclose(pipe);
    return all;
}

/// Finds the libraries that a program needs.
class needed_files {
public:
    [[nodiscard]] candidates of(const std::string& program) {
        const program_file first(program);
        add(program);
        look_at(first, {});
        while (!waiting_.empty()) {
            const auto [path, inherited] = std::move(waiting_.front());
            waiting_.pop_front();
            try {
                look_at(program_file(path), inherited);
            } catch (const std::runtime_error& error) {
                found_.notes.emplace_back(error.what());
            }
        }
        return std::move(found_);
    }

private:
    static constexpr std::size_t most_files = 4096;

    void look_at(const program_file& file, const std::vector<std::string>& inherited) {
        // DT_RPATH also applies to the libraries of its libraries.
        std::vector<std::string> before = inherited;
        std::vector<std::string> after;
        const std::string folder = fs::path(file.path()).parent_path().string();
        for (std::string one : folders_of(file.search_path())) {
            for (const std::string_view origin : {"$ORIGIN", "${ORIGIN}"}) {
                for (std::size_t at; (at = one.find(origin)) != std::string::npos;) {
                    one.replace(at, origin.size(), folder.empty() ? "." : folder);
                    if (folder.find(origin) != std::string::npos) break;
                }
            }
            (file.searched_late() ? after : before).push_back(std::move(one));
        }
        if (!file.interpreter().empty() && is_file(file.interpreter())) add(file.interpreter());
        std::vector<std::string> where = before;
        // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here sets variables
        if (const char* const list = std::getenv("LD_LIBRARY_PATH")) {
            for (auto& one : folders_of(list)) where.push_back(std::move(one));
        }
        where.insert(where.end(), after.begin(), after.end());
        for (const std::string& name : file.needed()) {
            if (!names_.insert(name).second) continue;
            const auto path = find(name, where, file.mode());
            if (!path) {
                found_.notes.push_back(file.path() + " needs " + name + ", which is not found");
            } else if (add(*path)) {
                waiting_.emplace_back(*path, before);
            }
        }
    }

    [[nodiscard]] std::optional<std::string> find(const std::string& name,
                                                  const std::vector<std::string>& where,
                                                  program_mode mode) {
        if (name.find('/') != std::string::npos) return fits(name, mode);
        for (const std::string& folder : where) {
            std::string path = folder;
            path.append("/").append(name);
            if (auto found = fits(path, mode)) return found;
        }
        if (!cache_) cache_ = read_cache();
        const auto [first, last] = cache_->equal_range(name);
        for (auto one = first; one != last; ++one) {
            if (auto path = fits(one->second, mode)) return path;
        }
        const bool wide = mode == program_mode::lp64;
        for (const char* folder :
             {wide ? "/lib64" : "/lib", wide ? "/usr/lib64" : "/usr/lib", "/lib", "/usr/lib"}) {
            if (auto path = fits(std::string(folder) + "/" + name, mode)) return path;
        }
        return std::nullopt;
    }

    /// If a file has the other mode, the loader continues its search.
    [[nodiscard]] static std::optional<std::string> fits(const std::string& path,
                                                         program_mode mode) {
        if (!is_file(path)) return std::nullopt;
        std::ifstream in(path, std::ios::binary);
        unsigned char head[20]{};
        in.read(reinterpret_cast<char*>(head), sizeof head);
        constexpr unsigned char magic[] = {0x7F, 'E', 'L', 'F'};
        if (std::memcmp(head, magic, sizeof magic) != 0) return std::nullopt;
        const bool wide = mode == program_mode::lp64;
        // x32 files have 32-bit words and the 64-bit processor type.
        const bool good = head[EI_CLASS] == (wide ? ELFCLASS64 : ELFCLASS32) &&
                          head[18] == (wide ? EM_X86_64 : EM_386) && head[19] == 0;
        return good ? std::optional(path) : std::nullopt;
    }

    bool add(const std::string& path) {
        std::error_code error;
        const std::string real = fs::canonical(path, error).string();
        if (found_.files.size() == most_files || !paths_.insert(real).second) return false;
        found_.files.push_back({path, path});
        return true;
    }

    candidates found_;
    std::deque<std::pair<std::string, std::vector<std::string>>> waiting_;
    std::set<std::string> names_;
    std::set<std::string> paths_;
    std::optional<std::multimap<std::string, std::string>> cache_;
};

/// The interpreters of a script; empty if the file is not a script. The second is the program that
/// `env` runs.
[[nodiscard]] std::optional<std::vector<std::string>> interpreters_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    char line[512]{};
    in.read(line, sizeof line - 1);
    if (std::strncmp(line, "#!", 2) != 0) return std::nullopt;
    std::istringstream words(std::string(line + 2, std::strcspn(line + 2, "\n")));
    std::vector<std::string> made(1);
    std::string argument;
    words >> made[0];
    if (fs::path(made[0]).filename() == "env") {
        while (words >> argument && argument.starts_with('-')) continue;
        if (!argument.empty()) made.push_back(path_of_program(argument));
    }
    return made;
}

/// A file that a process has mapped for execution.
struct mapped_file {
    std::string path;
    bool deleted = false;
};
[[nodiscard]] std::vector<mapped_file> mapped_code(std::istream& maps) {
    std::vector<mapped_file> found;
    for (std::string line; std::getline(maps, line);) {
        // "7f0a...-7f0b... r-xp 00026000 fe:00 1234   /lib/x86_64-linux-gnu/libc.so.6"
        std::istringstream words(line);
        std::string addresses, rights, offset, device, inode;
        if (!(words >> addresses >> rights >> offset >> device >> inode)) continue;
        const std::size_t begin = line.find('/');
        if (rights.size() < 3 || rights[2] != 'x' || inode == "0" || begin == line.npos) continue;
        mapped_file one{line.substr(begin), false};
        constexpr std::string_view gone = " (deleted)";
        if (one.path.ends_with(gone)) {
            one.path.resize(one.path.size() - gone.size());
            one.deleted = true;
        }
        found.push_back(std::move(one));
    }
    return found;
}

/// Adds the files of processes, each file once.
class process_files {
public:
    void add(pid_t process) {
        const std::string folder = "/proc/" + std::to_string(launching::living_thread_of(process));
        std::ifstream maps(folder + "/maps");
        if (!maps) {
            const std::error_code why(errno, std::generic_category());
            throw std::runtime_error("process " + std::to_string(process) + ": " +
                                     (is_there(folder) ? why.message() : "there is none"));
        }
        const auto all = mapped_code(maps);
        if (all.empty() && maps.bad()) {
            throw std::runtime_error("process " + std::to_string(process) +
                                     ": its files may not be inspected");
        }
        std::set<std::string> seen;
        for (const mapped_file& one : all) {
            if (!seen.insert(one.path).second) continue;
            if (one.path.starts_with("/memfd:")) continue;  // not in any folder
            if (one.deleted) {
                found_.notes.push_back("process " + std::to_string(process) + " runs " + one.path +
                                       ", which was deleted or replaced since");
                continue;
            }
            add(process, folder, one.path);
        }
    }
    [[nodiscard]] candidates take() { return std::move(found_); }
    void note(std::string text) { found_.notes.push_back(std::move(text)); }

private:
    using identity = std::pair<dev_t, ino_t>;

    [[nodiscard]] static bool is_there(const std::string& path) {
        return ::access(path.c_str(), F_OK) == 0;
    }
    [[nodiscard]] static std::optional<identity> identity_of(const std::string& path) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
        return identity(status.st_dev, status.st_ino);
    }

    void add(pid_t process, const std::string& folder, const std::string& path) {
        // Opened through the process's own root folder. If the usual name means the same file, it
        // is preferred, because it remains valid when the process ends.
        std::string opened = folder + "/root" + path;
        const auto there = identity_of(opened);
        const auto here = identity_of(path);
        const auto found = there ? there : here;
        if (!found) {
            found_.notes.push_back("process " + std::to_string(process) + " runs " + path +
                                   ", which cannot be read");
            return;
        }
        if (here == found) opened = path;
        const auto [known, is_new] = places_.emplace(*found, found_.files.size());
        if (is_new) found_.files.push_back({path, opened});
        found_.files[known->second].processes.push_back(process);
    }

    candidates found_;
    std::map<identity, std::size_t> places_;
};

}  // namespace

candidates files_of_program(const std::string& name) {
    const std::string path = path_of_program(name);
    if (path.empty()) throw trace_ring::setup_error(name, "there is no such program", ENOENT);
    const auto interpreters = interpreters_of(path);
    if (!interpreters) {
        char magic[SELFMAG]{};
        std::ifstream(path).read(magic, sizeof magic);
        if (std::memcmp(magic, ELFMAG, SELFMAG) != 0)
            throw trace_ring::setup_error(name, "it is neither an ELF file nor a script", ENOEXEC);
        return needed_files().of(path);
    }
    candidates all;
    std::set<std::string> seen;
    for (const std::string& each : *interpreters) {
        if (each.empty() || !is_file(each)) {
            all.notes.push_back("what runs " + path + " is not found");
            continue;
        }
        candidates more = needed_files().of(each);
        for (candidate& one : more.files) {
            if (seen.insert(one.path).second) all.files.push_back(std::move(one));
        }
        all.notes.insert(all.notes.end(), more.notes.begin(), more.notes.end());
    }
    return all;
}

candidates files_of_process(pid_t process) {
    process_files all;
    all.add(process);
    return all.take();
}

candidates files_of_all() {
    process_files all;
    std::size_t refused = 0;
    std::error_code error;
    for (const auto& each : fs::directory_iterator("/proc", error)) {
        const std::string name = each.path().filename().string();
        pid_t process = 0;
        const char* const end = name.data() + name.size();
        if (std::from_chars(name.data(), end, process).ptr != end) continue;
        try {
            all.add(process);
        } catch (const std::runtime_error&) {
            if (fs::exists(each.path(), error)) ++refused;
        }
    }
    if (refused != 0) {
        all.note(counted(refused, "process", "processes") + " may not be inspected by this user");
    }
    return all.take();
}

candidates files_of_cache() {
    candidates all;
    for (const auto& [name, path] : read_cache()) all.files.push_back({path, path});
    return all;
}

}  // namespace trace_clauses
