// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "plan.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <trace_ring/glob.hpp>
#include <trace_ring/point/specification.hpp>

#include "../../counted.hpp"
#include "../../expressions/parse.hpp"
#include "../firings/asked_values.hpp"
#include "../firings/kept_words.hpp"
#include "../language/type_names.hpp"
#include "../points/find_points.hpp"
#include "../points/program_file.hpp"
#include "../types/calling_convention.hpp"
#include "../types/declarations.hpp"
#include "../types/dwarf_types.hpp"
#include "../types/type_table.hpp"

namespace trace_clauses {
namespace {

using trace_ring::point::specification;

/// The types of one mode, from the script and from the files with points.
class mode_types {
public:
    mode_types(program_mode mode, bool assumes_abi) : table(mode), assumes_abi_(assumes_abi) {}

    /// The function of a point, if its file describes it; otherwise null.
    [[nodiscard]] const function_type* declared(const trace_point& at) {
        last_.reset();
        dwarf_types* const of = at.is == trace_point::kind::function ? known_of(at) : nullptr;
        if (of != nullptr) last_ = of->of_function(at.address);
        if (!last_) return nullptr;
        // If gcc removes a result or splits an argument, the function's name shows this.
        const bool is_changed =
            at.fields.size() > 3 && at.fields[3].find(".isra") != std::string::npos;
        if (is_changed) last_->by_gcc = false;
        settle_places(table, *last_, {.is_exported = !at.is_local, .assumes_abi = assumes_abi_});
        return &*last_;
    }
    /// Finds an enumerator in a point's file.
    [[nodiscard]] std::optional<enumerator> value(const trace_point& at, const std::string& name) {
        dwarf_types* const of = known_of(at);
        return of == nullptr ? std::nullopt : of->value(name);
    }

    type_table table;

private:
    /// Returns null if the file has no types, or can no longer be read although its points were
    /// found.
    [[nodiscard]] dwarf_types* known_of(const trace_point& at) {
        if (at.program == nullptr) return nullptr;
        auto& of = files_[at.program.get()];
        try {
            if (of == nullptr) of = std::make_unique<dwarf_types>(*at.program, table);
        } catch (const std::runtime_error&) {
            return nullptr;
        }
        return of->any() ? of.get() : nullptr;
    }

    bool assumes_abi_;
    std::map<const program_file*, std::unique_ptr<dwarf_types>> files_;
    std::optional<function_type> last_;
};

class planner {
public:
    planner(const std::string& script, candidates files, planning how)
        : text_(script), finder_(std::move(files)), how_(how) {
        made_.files = finder_.among().files;
        // All processes of a machine may be many.
        constexpr std::size_t most_notes = 8;
        made_.notes = finder_.among().notes;
        if (made_.notes.size() > most_notes) {
            const std::size_t others = made_.notes.size() - 1;
            made_.notes.resize(1);
            made_.notes[0] +=
                "; " + counted(others, "more file is", "more files are") + " left out";
        }
    }

    [[nodiscard]] plan make() {
        auto parsed = expressions::parse_script(text_);
        if (const auto* why = std::get_if<mistake>(&parsed)) refuse(*why);
        const auto& script = std::get<expressions::script>(parsed);
        std::size_t declared = 0;  // up to this point: one call takes all consecutive ones
        for (const auto& each : script.declarations) {
            if (each.column < declared) continue;
            try {
                declared = declare(text_, each.column, of_64_.table, of_32_.table);
            } catch (const declaration_error& why) {
                throw script_error(why.what());
            }
        }
        if (script.clauses.empty()) throw script_error("there is no clause in it");
        for (const auto& each : script.clauses) {
            try {
                add(each);
            } catch (const script_error& why) {
                if (!how_.leaves_out) throw;
                made_.notes.push_back("a clause is left out: " + std::string(why.what()));
            }
        }
        find_spans();
        for (auto& [where, point] : by_place_) made_.points.push_back(std::move(point));
        return std::move(made_);
    }

private:
    [[noreturn]] void refuse(const mistake& why) const {
        throw script_error(expressions::describe(text_, why));
    }

    void add(const expressions::clause_text& clause) {
        std::vector<trace_point> points;
        bool once = false;
        std::string name;
        for (const auto& place : clause.points) {
            const std::string_view tuple =
                std::string_view(text_).substr(place.column, place.length);
            specification::mistake why;
            const specification wanted = specification::parse(tuple, why);
            if (why.what != nullptr) refuse({place.column + why.at, 1, why.what});
            if (name.empty()) name = name_of(wanted.fields());
            if (wanted.is("begin") || wanted.is("end")) {
                once = true;
                if (clause.points.size() > 1) {
                    refuse({place.column, place.length, "begin and end stand alone"});
                }
                continue;
            }
            try {
                auto found = finder_.find(wanted);
                for (auto& each : found.points) points.push_back(std::move(each));
                for (auto& each : found.notes) made_.notes.push_back(std::move(each));
            } catch (const std::runtime_error& why_not) {
                refuse({place.column, place.length, why_not.what()});
            }
        }
        for (const auto& each : points) {
            const auto& at = clause.points.front();
            if (each.at_return != points.front().at_return || each.is != points.front().is) {
                refuse({at.column, at.length,
                        "a clause is for entries, for exits, for probes or for system calls: what "
                        "they know differs"});
            }
        }
        const auto& first = clause.points.front();
        const auto group = static_cast<std::uint32_t>(made_.clauses.size());
        made_.clauses.push_back({name, text_.substr(first.column, first.length)});
        if (once) {
            const std::uint32_t number = add_code(group, name, own_code(clause), of_64_);
            (made_.clauses.back().text.starts_with("@@begin") ? made_.at_begin : made_.at_end)
                .push_back(number);
        }
        // Each point has separate code, because the types and places of its arguments differ. If
        // there are several points, those without the values that the clause uses are omitted.
        std::optional<mistake> first_mistake;
        std::size_t compiled_ones = 0;
        std::map<std::string, std::vector<std::string>> left_out;  // by cause
        for (auto& each : points) {
            mode_types& types = each.mode == program_mode::lp64 ? of_64_ : of_32_;
            const ::pid_t process = each.process.value_or(how_.process);
            const function_part part = part_of(each);
            const auto key_of = [&](std::uint32_t keeps) {
                return std::tuple{each.file, each.offset, part, process, each.mode, keeps};
            };
            const auto is_there = [&](std::uint32_t keeps) {
                const auto found = by_place_.find(key_of(keeps));
                return found != by_place_.end() &&
                       std::any_of(found->second.clauses.begin(), found->second.clauses.end(),
                                   [&](std::uint32_t number) {
                                       return made_.code_of[number].clause == group;
                                   });
            };
            // Already placed, through another tuple.
            if (is_there(keeps_nothing) || is_there(group)) continue;
            compiled made;
            try {
                made = compiled_for(clause, &each, types);
                if (each.at_return && each.repeats_entry &&
                    (!made.entry.empty() || asks_elapsed(made.predicate) ||
                     asks_elapsed(made.action))) {
                    throw mistake{
                        clause.points.front().column, clause.points.front().length,
                        "neither 'elapsed' nor arguments are known at its exit: it begins "
                        "with a loop, or with what a call of itself has become"};
                }
                ++compiled_ones;
            } catch (const mistake& why) {
                if (!first_mistake) first_mistake = why;
                left_out[why.what].push_back(each.text());
                continue;
            }
            // A clause that keeps arguments runs separately, because each keeps its own arguments.
            auto& point = by_place_[key_of(made.entry.empty() ? keeps_nothing : group)];
            if (point.clauses.empty()) {
                point.at = {each.file, each.offset,  part,      process, each.semaphore_offset,
                            each.mode, each.returns, each.jumps};
                point.returns_elsewhere = each.returns_elsewhere;
            }
            if (!made.entry.empty()) {
                const compiled entry{.action = std::move(made.entry),
                                     .output_bytes = sizeof(kept_words)};
                point.entry = add_code(group, name_of(each.fields), entry, types);
            }
            point.clauses.push_back(add_code(group, name_of(each.fields), std::move(made), types));
        }
        if (compiled_ones == 0 && first_mistake) refuse(*first_mistake);
        for (const auto& [cause, names] : left_out) {
            made_.notes.push_back(with_others(names.front(), names.size()) +
                                  (names.size() == 1 ? " is" : " are") + " left out: " + cause);
        }
    }
    /// Finds the captures at exits that end those at entries. A clause with a predicate is
    /// excluded: a span could remain without its end, or get the end of a later call.
    void find_spans() {
        const auto captures_each = [&](std::uint32_t number, program_mode mode) {
            const auto& all = made_.code_of[number].statements;
            return made_.code.at(made_.code.stream_of(number, mode).predicate).empty() &&
                   std::any_of(all.begin(), all.end(), [](const statement& one) {
                       return one.is == statement::kind::capture;
                   });
        };
        for (const auto& [where, point] : by_place_) {
            const auto& [file, offset, part, process, mode, keeps] = where;
            if (!is_function_exit(part) && part != function_part::system_call_exit) continue;
            const bool is_call = is_system_call(part);
            const auto entry = by_place_.find(
                {file, offset, is_call ? function_part::system_call : function_part::entry, process,
                 mode, keeps_nothing});
            if (entry == by_place_.end()) continue;
            const auto& begins = entry->second.clauses;
            const auto is_wanted = [&, in = mode](std::uint32_t number) {
                return captures_each(number, in);
            };
            const auto first = std::find_if(begins.begin(), begins.end(), is_wanted);
            const auto last = std::find_if(point.clauses.begin(), point.clauses.end(), is_wanted);
            if (first != begins.end() && last != point.clauses.end())
                made_.spans.emplace_back(*first, *last);
        }
    }
    std::uint32_t add_code(std::uint32_t group, std::string name, compiled of,
                           const mode_types& types) {
        const std::vector<point::instruction> nothing{{point::op::finish}};
        const point::clause_code code{of.predicate, of.action, of.output_bytes};
        const bool wide = types.table.mode() == program_mode::lp64;
        const point::clause_code none{{}, nothing, 0};
        made_.code_of.push_back({group, std::move(name), std::move(of.statements)});
        return made_.code.add(wide ? code : none, wide ? none : code);
    }
    [[nodiscard]] static function_part part_of(const trace_point& at) noexcept {
        switch (at.is) {
            case trace_point::kind::function:
                if (!at.at_return) return function_part::entry;
                return at.returns.empty() ? function_part::exit : function_part::returning;
            case trace_point::kind::system_call:
                return at.at_return ? function_part::system_call_exit : function_part::system_call;
            default:
                return function_part::inside;
        }
    }
    /// The name of the function or probe, which is also the name of its events.
    template <class Fields>
    [[nodiscard]] static std::string name_of(const Fields& fields) {
        const auto field = [&](std::size_t from_end) {
            return std::string(fields[fields.size() - 1 - from_end]);
        };
        if (fields.size() < 3) return std::string(fields[0]);
        if (field(0) == "entry") return field(1);
        return field(0) == "exit" ? field(1) + ".exit" : field(0);
    }

    [[nodiscard]] compiled own_code(const expressions::clause_text& clause) {
        try {
            return compiled_for(clause, nullptr, of_64_);
        } catch (const mistake& why) {
            refuse(why);
        }
    }
    /// Compiles for one point; null: for the session's begin or end. Throws mistake.
    [[nodiscard]] compiled compiled_for(const expressions::clause_text& clause,
                                        const trace_point* at, mode_types& types) const {
        const bool probe = at != nullptr && at->is == trace_point::kind::probe;
        environment in{types.table};
        std::string what_fires;
        if (at != nullptr) {
            what_fires = at->fields[at->fields.size() - (probe ? 1 : 2)];
            if (probe) what_fires.insert(0, at->fields[at->fields.size() - 2] + ":");
            (probe                                      ? in.probe_name
             : at->is == trace_point::kind::system_call ? in.system_call
                                                        : in.function) = what_fires;
            in.declared = types.declared(*at);
            in.at_return = at->at_return;
            in.probe = probe ? &at->arguments : nullptr;
            in.at_system_call = at->is == trace_point::kind::system_call;
            in.keeps_to_abi = !at->is_local || how_.assumes_abi;
            in.has_all_registers = how_.has_all_registers;
            in.value = [&](const std::string& name) { return types.value(*at, name); };
        }
        return compile(text_, clause, in);
    }

    const std::string& text_;
    point_finder finder_;
    planning how_;
    mode_types of_64_{program_mode::lp64, how_.assumes_abi};
    mode_types of_32_{program_mode::ilp32, how_.assumes_abi};
    plan made_;
    static constexpr std::uint32_t keeps_nothing = UINT32_MAX;
    // By place, and by clause if it keeps arguments there.
    std::map<
        std::tuple<std::string, std::uint64_t, function_part, ::pid_t, program_mode, std::uint32_t>,
        planned_point>
        by_place_;
};

}  // namespace

plan make_plan(const std::string& script, candidates files, planning how) {
    return planner(script, std::move(files), how).make();
}

std::vector<std::string> list_points(const std::string& what, candidates files) {
    const std::size_t colon = what.rfind(':');
    if (colon == std::string::npos)
        throw std::runtime_error("--list takes OBJECT:NAME, as 'libc*:mal*'");
    const std::string object = what.substr(0, colon);
    const std::string name = what.substr(colon + 1);
    point_finder finder(std::move(files));
    std::vector<std::string> lines;
    std::string why_not;
    std::map<std::string, std::string> numbers;  // for system calls
    std::vector<std::string> tuples{"@@uft:*:" + object + ":" + name + ":entry",
                                    "@@usdt:*:" + object + ":*:" + name};
    if (trace_ring::matches_glob(object, "syscall"))
        tuples.push_back("@@syscall:*:" + name + ":entry");
    for (const std::string& tuple : tuples) {
        specification::mistake why;
        const specification wanted = specification::parse(tuple, why);
        if (why.what != nullptr) throw std::runtime_error("--list: " + tuple + ": " + why.what);
        try {
            mode_types wide(program_mode::lp64, false);
            mode_types narrow(program_mode::ilp32, false);
            for (const auto& each : finder.find(wanted).points) {
                const bool is_wide = each.mode == program_mode::lp64;
                const std::string bits = is_wide ? "  64 bits" : "  32 bits";
                if (each.is == trace_point::kind::system_call) {
                    numbers[each.text()] += bits + ": " + std::to_string(each.offset);
                    continue;
                }
                mode_types& types = is_wide ? wide : narrow;
                std::string line = each.text() + bits;
                if (const function_type* const declared = types.declared(each)) {
                    line += "  (";
                    for (const auto& one : declared->parameters) {
                        if (line.back() != '(') line += ", ";
                        line += shown_type(types.table, one.type) +
                                (one.name.empty() ? "" : " " + one.name);
                    }
                    if (declared->is_variadic)
                        line += declared->parameters.empty() ? "..." : ", ...";
                    line += ") -> " + shown_type(types.table, declared->returns);
                }
                for (const auto& one : each.arguments) line += "  " + one.text;
                lines.push_back(std::move(line));
            }
        } catch (const std::runtime_error& error) {
            if (why_not.empty() || object == "syscall") why_not = error.what();
        }
    }
    for (const auto& [call, of_modes] : numbers) lines.push_back(call + of_modes);
    if (lines.empty()) throw std::runtime_error(why_not);
    return lines;
}

}  // namespace trace_clauses
