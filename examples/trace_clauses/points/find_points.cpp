// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "find_points.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include <trace_ring/glob.hpp>

#include "../../expressions/nearest.hpp"
#include "../../symbols/rust_name.hpp"
#include "system_calls.hpp"

namespace trace_clauses {
namespace {

namespace fs = std::filesystem;
using expressions::nearest;
using trace_ring::matches_glob;
using trace_ring::point::specification;

constexpr std::size_t longest_told = 60;  // names in messages

[[nodiscard]] std::string in_quotes(std::string_view name) {
    return "'" + std::string(name) + "'";
}
[[nodiscard]] std::string name_of(const std::string& path) {
    return fs::path(path).filename().string();
}

/// "; did you mean 'malloc'?", or the first few names.
template <class Names>
[[nodiscard]] std::string instead(std::string_view asked, const Names& names) {
    nearest to(asked, 3);
    for (const auto& each : names) to.look(each);
    if (!to.found().empty()) return to.suggestion();
    constexpr std::size_t most = 8;
    std::string out;
    std::size_t told = 0;
    for (const auto& each : names) {
        out += told == 0 ? "; there is " : ", ";
        if (told++ == most) return out + "...";
        out += in_quotes(each);
    }
    return out;
}

void need_fields(const specification& what, std::size_t count, const char* form) {
    if (what.fields().size() != count) {
        throw std::runtime_error(in_quotes(what.fields()[0]) + " has " + std::to_string(count) +
                                 " fields: " + form);
    }
}

/// The process; empty for any.
[[nodiscard]] std::optional<pid_t> process_of(const specification& what) {
    const std::string_view text = what.fields()[1];
    if (text == "*") return std::nullopt;
    pid_t process = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, process);
    if (error != std::errc{} || at != end || process <= 0) {
        throw std::runtime_error(in_quotes(text) +
                                 " is not a process: write its number, or * for any");
    }
    return process;
}

/// Entry, exit, or both.
struct places {
    bool entry = false;
    bool exit = false;
};
[[nodiscard]] places places_of(std::string_view location) {
    const places made{matches_glob(location, "entry"), matches_glob(location, "exit")};
    if (!made.entry && !made.exit) {
        throw std::runtime_error(in_quotes(location) + " is not a place: use 'entry' or 'exit'");
    }
    return made;
}

[[nodiscard]] point_finder::result find_system_calls(const specification& what) {
    need_fields(what, 4, "@@syscall:PROCESS:NAME:entry, or exit");
    const std::string_view glob = what.fields()[2];
    const places at = places_of(what.fields()[3]);
    point_finder::result found;
    std::set<std::string_view> names;
    for (const program_mode mode : {program_mode::lp64, program_mode::ilp32}) {
        for (const auto& each : system_calls(mode)) {
            names.insert(each.name);
            if (!matches_glob(glob, each.name)) continue;
            for (const bool at_return : {false, true}) {
                if (!(at_return ? at.exit : at.entry)) continue;
                trace_point made;
                made.is = trace_point::kind::system_call;
                made.fields = {"syscall", std::string(what.fields()[1]), std::string(each.name),
                               at_return ? "exit" : "entry"};
                made.mode = mode;
                made.at_return = at_return;
                made.process = process_of(what);
                made.offset = each.number;
                found.points.push_back(std::move(made));
            }
        }
    }
    if (found.points.empty()) {
        throw std::runtime_error("there is no system call " + in_quotes(glob) +
                                 instead(glob, names));
    }
    return found;
}

/// Functions, and the number of places where each is inlined. `how`: "also " if they also have
/// ordinary code.
[[nodiscard]] std::string told_as_inlined(
    const std::vector<std::pair<std::string, std::size_t>>& functions, std::string_view how) {
    std::size_t places = 0;
    for (const auto& each : functions) places += each.second;
    const bool many = functions.size() > 1;
    return with_others(in_quotes(functions.front().first), functions.size()) +
           (many ? " are " : " is ") + std::string(how) + "inlined at " + std::to_string(places) +
           (places == 1 ? " place" : " places") +
           (how.empty() ? ", and has no out-of-line code that could be traced"
                        : ", where no point fires");
}

}  // namespace

std::string with_others(std::string first, std::size_t all) {
    if (all > 1) first += " and " + std::to_string(all - 1) + " more";
    return first;
}

std::string trace_point::text() const {
    std::string all = "@@";
    for (const std::string& each : fields) {
        if (all.size() > 2) all += ':';
        const bool plain = each.find(':') == std::string::npos;
        all += plain ? each : '"' + each + '"';
    }
    return all;
}

point_finder::result point_finder::find(const specification& what) {
    if (what.fields().empty()) throw std::runtime_error("no trace point");
    if (what.is("uft")) return find_functions(what);
    if (what.is("usdt")) return find_probes(what);
    if (what.is("syscall")) return find_system_calls(what);
    throw std::runtime_error("there are no trace points of type " + in_quotes(what.fields()[0]) +
                             ": there is 'uft', 'usdt' and 'syscall'");
}

std::vector<const candidate*> point_finder::named(std::string_view object,
                                                  std::optional<pid_t> process) {
    const bool by_path = object.find('/') != std::string_view::npos;
    // A process has libstdc++.so.6.0.30 loaded, by the name libstdc++.so.6.
    std::string versions;
    if (object.find(".so") != std::string_view::npos) versions = std::string(object) + ".*";
    std::vector<const candidate*> found;
    const auto look = [&](const candidate& one) {
        const auto& in = one.processes;
        if (process && std::find(in.begin(), in.end(), *process) == in.end()) return;
        const std::string name = by_path ? one.path : name_of(one.path);
        if (matches_glob(object, name) || (!versions.empty() && matches_glob(versions, name))) {
            found.push_back(&one);
        }
    };
    for (const candidate& one : among_.files) look(one);
    for (const auto& one : asked_for_) look(*one);
    if (!found.empty()) return found;
    const auto remember = [&](candidate one) {
        asked_for_.push_back(std::make_unique<candidate>(std::move(one)));
        look(*asked_for_.back());
    };
    if (process) {
        // A process other than the given ones.
        for (candidate& one : files_of_process(*process).files) remember(std::move(one));
    } else if (by_path && fs::exists(fs::path(object))) {
        asked_for_.push_back(
            std::make_unique<candidate>(candidate{std::string(object), std::string(object)}));
        found.push_back(asked_for_.back().get());
    }
    return found;
}

void point_finder::no_such_object(std::string_view object) const {
    std::set<std::string> names;
    const bool by_path = object.find('/') != std::string_view::npos;
    for (const candidate& one : among_.files) names.insert(by_path ? one.path : name_of(one.path));
    // The specification may name a known function that cannot be traced.
    std::string why;
    for (const std::string& each : among_.notes) {
        if (each.find(object) != std::string::npos) why = "; " + each;
    }
    throw std::runtime_error("no file " + in_quotes(object) + " is loaded" +
                             (why.empty() ? instead(object, names) : why));
}

std::vector<point_finder::opened_file> point_finder::objects(const specification& what,
                                                             result& into) {
    const std::string_view object = what.fields()[2];
    std::vector<opened_file> found;
    std::set<std::string> seen;
    std::string cause;
    for (const candidate* const one : named(object, process_of(what))) {
        std::error_code error;
        const fs::path real = fs::canonical(one->opened, error);
        if (!seen.insert(error ? one->opened : real.string()).second) continue;
        const auto [known, is_new] = files_.try_emplace(one->opened);
        if (is_new) {
            try {
                known->second = std::make_shared<program_file>(one->opened, one->path);
            } catch (const std::runtime_error& wrong) {
                unreadable_[one->opened] = wrong.what();
            }
        }
        if (known->second == nullptr) {
            cause = unreadable_[one->opened];
            into.notes.push_back(cause);
            continue;
        }
        found.push_back({name_of(one->path), one, known->second});
    }
    if (found.empty() && !cause.empty()) throw std::runtime_error(cause);
    if (found.empty()) no_such_object(object);
    return found;
}

exit_points& point_finder::exits_of(const program_file& of) {
    auto& exits = exits_[&of];
    if (exits == nullptr) exits = std::make_unique<exit_points>(of);
    return *exits;
}

const char* point_finder::make_exit(trace_point& into, const program_file& in,
                                    const program_function& of) {
    exit_points& exits = exits_of(in);
    if (const char* const why = exits.refusal(of)) return why;
    return_places::result places = exits.places(of);
    if (places.doubt == nullptr && places.offsets.empty()) return "it never returns";
    into.at_return = true;
    into.returns = std::move(places.offsets);
    into.returns_elsewhere = places.doubt;
    into.jumps = std::move(places.jumps);
    into.repeats_entry = places.repeats_entry;
    return nullptr;
}

const inlined_calls& point_finder::inlined_in(const program_file& of) {
    auto& calls = inlined_[&of];
    if (calls == nullptr) calls = std::make_unique<inlined_calls>(of);
    return *calls;
}

point_finder::result point_finder::find_functions(const specification& what) {
    need_fields(what, 5, "@@uft:PROCESS:OBJECT:FUNCTION:entry, or exit");
    const auto process = process_of(what);
    const std::string_view glob = what.fields()[3];
    const places at = places_of(what.fields()[4]);
    result found;
    const auto all = objects(what, found);
    const std::size_t notes_of_files = found.notes.size();    // files that cannot be read
    std::map<std::string, std::vector<std::string>> refused;  // exits, by cause
    constexpr std::size_t most_overloads = 20;
    std::set<std::string> overloads;
    std::vector<std::pair<std::string, std::size_t>> also_inlined;  // with the number of places
    std::vector<std::string> repeated;                              // entries
    for (const opened_file& each : all) {
        for (const auto& match : each.file->functions(glob)) {
            if (match.name.find('(') != std::string::npos && overloads.size() < most_overloads)
                overloads.insert(match.name);
            if (const std::size_t places = inlined_in(*each.file).of(match.function->names))
                also_inlined.emplace_back(match.name, places);
            for (const bool at_return : {false, true}) {
                if (!(at_return ? at.exit : at.entry)) continue;
                trace_point made;
                if (at_return) {
                    if (const char* const why = make_exit(made, *each.file, *match.function)) {
                        refused[why].push_back(match.name);
                        continue;
                    }
                } else {
                    made.repeats_entry = exits_of(*each.file).places(*match.function).repeats_entry;
                    if (made.repeats_entry) repeated.push_back(match.name);
                }
                made.fields = {"uft", std::string(what.fields()[1]), each.name, match.name,
                               at_return ? "exit" : "entry"};
                made.file = each.from->opened;
                made.offset = match.function->offset;
                made.mode = each.file->mode();
                made.process = process;
                made.address = match.function->address;
                made.is_local = match.function->is_local;
                made.program = each.file;
                found.points.push_back(std::move(made));
            }
        }
        std::size_t chosen = 0;
        std::string_view first;
        for (const std::string& name : each.file->chosen_when_loaded()) {
            if (!matches_glob(glob, name)) continue;
            if (chosen++ == 0) first = name;
        }
        if (chosen != 0) {
            found.notes.push_back(
                with_others(in_quotes(first), chosen) + " of " + each.name +
                (chosen > 1 ? " are" : " is") +
                " chosen when it is loaded (IFUNC), and no trace point: trace what is chosen, as "
                "'*" +
                std::string(first) + "*' may find it");
        }
    }
    for (const auto& [why, names] : refused) {
        found.notes.push_back("no exit point at " +
                              with_others(in_quotes(names.front()), names.size()) + ": " + why);
    }
    if (overloads.size() > 1 && glob.find_first_of("*?[(") == std::string_view::npos) {
        std::string all_of_them;
        for (const std::string& each : overloads)
            all_of_them += (all_of_them.empty() ? "" : ", ") + in_quotes(each);
        found.notes.push_back(in_quotes(glob) + " means " + std::to_string(overloads.size()) +
                              " functions: " + all_of_them + "; with its arguments, one is meant");
    }
    if (!repeated.empty()) {
        found.notes.push_back(with_others(in_quotes(repeated.front()), repeated.size()) +
                              (repeated.size() > 1 ? " begin" : " begins") +
                              " with a loop, or with what a call of itself has become: the entry "
                              "fires each time");
    }
    if (!also_inlined.empty()) found.notes.push_back(told_as_inlined(also_inlined, "also "));
    if (!found.points.empty()) return found;
    for (const opened_file& each : all) {
        const auto inlined = inlined_in(*each.file).matching(glob);
        if (!inlined.empty()) throw std::runtime_error(told_as_inlined(inlined, ""));
    }
    if (found.notes.size() > notes_of_files) throw std::runtime_error(found.notes.back());
    std::set<std::string> names;
    bool stripped = false;
    bool is_rust_unread = false;
    name_reader readable;
    for (const opened_file& each : all) {
        stripped = stripped || each.file->stripped();
        for (const auto& one : each.file->functions()) {
            for (const std::string& name : one.names) {
                const std::string written = readable(name);
                is_rust_unread =
                    is_rust_unread || (name.starts_with("_R") && !symbols::reads_rust_names());
                if (written.size() <= longest_told) names.insert(written);
            }
        }
    }
    const std::string where = all.size() == 1 ? all[0].name : std::to_string(all.size()) + " files";
    throw std::runtime_error(
        "there is no function " + in_quotes(glob) + " in " + where +
        (stripped ? ", of which only some have names, as it is stripped" : "") +
        (is_rust_unread ? "; Rust's are known as the compiler mangles them, as this was built "
                          "without libiberty"
                        : "") +
        instead(glob, names));
}

point_finder::result point_finder::find_probes(const specification& what) {
    need_fields(what, 5, "@@usdt:PROCESS:OBJECT:PROVIDER:NAME");
    const auto process = process_of(what);
    result found;
    const auto all = objects(what, found);
    std::set<std::string> providers, names;
    for (const opened_file& each : all) {
        for (const usdt_point& one : each.file->probes()) {
            providers.insert(one.provider);
            if (!matches_glob(what.fields()[3], one.provider)) continue;
            names.insert(one.name);
            if (!matches_glob(what.fields()[4], one.name)) continue;
            trace_point made;
            made.is = trace_point::kind::probe;
            made.fields = {"usdt", std::string(what.fields()[1]), each.name, one.provider,
                           one.name};
            made.file = each.from->opened;
            made.offset = one.offset;
            made.mode = each.file->mode();
            made.semaphore_offset = one.semaphore_offset;
            made.arguments = one.arguments;
            made.process = process;
            made.program = each.file;
            found.points.push_back(std::move(made));
        }
    }
    if (!found.points.empty()) return found;
    const std::string where = all.size() == 1 ? all[0].name : std::to_string(all.size()) + " files";
    if (providers.empty()) throw std::runtime_error("there are no probes in " + where);
    if (names.empty()) {
        throw std::runtime_error("there is no provider " + in_quotes(what.fields()[3]) + " in " +
                                 where + instead(what.fields()[3], providers));
    }
    throw std::runtime_error("there is no probe " + in_quotes(what.fields()[4]) + " in " + where +
                             instead(what.fields()[4], names));
}

}  // namespace trace_clauses
