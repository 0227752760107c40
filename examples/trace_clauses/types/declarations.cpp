// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "declarations.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "basic_types.hpp"
#include "declaration_tree.hpp"

namespace trace_clauses {
namespace {

using kind = node::kind;
using point::c_type;

[[noreturn]] void fail(const node& at, std::string what) {
    throw declaration_fault{at.at, std::move(what)};
}

/// Adds a tree to the table of one mode.
class builder {
public:
    explicit builder(type_table& into) : table_(into) {}

    void add(const node& one) {
        const type_id type = specified(one.parts.at(0));
        if (one.is == kind::definition) return;
        for (std::size_t i = 1; i < one.parts.size(); ++i) {
            const declared made = declare(one.parts[i], type);
            if (made.width != nullptr) fail(*made.width, "only members have a number of bits");
            table_.name(made.name, made.type);
        }
    }

private:
    struct declared {
        std::string name;
        type_id type = 0;
        bool is_function = false;
        const node* width = nullptr;
    };

    [[nodiscard]] type_id specified(const node& one) {
        switch (one.is) {
            case kind::structure:
            case kind::union_:
                return record(one);
            case kind::enumeration:
                return enumeration(one);
            default:
                return worded(one);
        }
    }

    [[nodiscard]] type_id worded(const node& one) {
        if (one.word == "void") return type_table::nothing();
        if (const auto found = basic_of(one.word)) return found->in(table_);
        if (const auto found = table_.names().find(one.word); found != table_.names().end()) {
            return found->second;
        }
        if (const auto found = usual(one.word)) return found->in(table_);
        if (one.word.find(' ') != std::string::npos) fail(one, "no type is '" + one.word + "'");
        std::string what = "there is no type '" + one.word + "'";
        for (const char* tag : {"struct ", "union ", "enum "}) {
            if (table_.names().contains(tag + one.word)) {
                what += "; did you mean '" + (tag + one.word) + "'?";
            }
        }
        fail(one, std::move(what));
    }

    [[nodiscard]] type_id record(const node& one) {
        const bool is_union = one.is == kind::union_;
        const std::string name =
            one.word.empty() ? "" : (is_union ? "union " : "struct ") + one.word;
        if (!one.has_body) {
            if (name.empty()) fail(one, "a structure has a name or members");
            const auto known = table_.names().find(name);
            if (known != table_.names().end()) return known->second;
            const type_id made = table_.add({.name = name});
            table_.name(name, made);
            return made;
        }
        // Added before its members, which may point to it. Existing pointers to it remain valid.
        type_id made = table_.find(name);
        if (name.empty() || made == type_table::nothing() ||
            table_[made].is != type::kind::nothing) {
            made = table_.add({.name = name});
        }
        if (!name.empty()) define(name, made, one);
        point::layout where(is_union ? point::layout::union_of_all : point::layout::structure,
                            one.packed);
        std::vector<member> members;
        std::set<std::string> names;
        for (const node& line : one.parts) add_line(line, where, members, names);
        type whole{.is = type::kind::structure,
                   .name = name,
                   .size = where.whole(),
                   .members = std::move(members)};
        table_[made] = std::move(whole);
        return made;
    }

    void define(const std::string& name, type_id is, const node& at) {
        if (!defined_.insert(name).second) fail(at, "'" + name + "' is declared twice");
        table_.name(name, is);
    }

    void add_line(const node& line, point::layout& where, std::vector<member>& members,
                  std::set<std::string>& names) {
        const node& specifier = line.parts.at(0);
        const type_id type = specified(specifier);
        if (line.parts.size() == 1) {
            const bool nameless = specifier.has_body && specifier.word.empty();
            if (nameless && specifier.is != kind::enumeration) {
                add_member(specifier, {"", type}, where, members);
            } else if (!specifier.has_body) {
                fail(specifier, "this member has no name");
            }
            return;
        }
        for (std::size_t i = 1; i < line.parts.size(); ++i) {
            const node& one = line.parts[i];
            const declared made = declare(one, type);
            const node& at = one.at == nullptr ? specifier : one;
            if (!made.name.empty() && !names.insert(made.name).second) {
                fail(at, "there are two members '" + made.name + "'");
            }
            if (made.width != nullptr) {
                add_bits(at, made, where, members);
            } else {
                add_member(at, made, where, members);
            }
        }
    }

    void add_member(const node& at, const declared& made, point::layout& where,
                    std::vector<member>& members) {
        const type& is = table_[made.type];
        if (made.is_function) fail(at, "a member is no function, but may point to one");
        if (is.is == type::kind::nothing && is.size.bytes == 0) {
            fail(at, (is.name.empty() ? "this" : "'" + is.name + "'") +
                         " is not complete here: it has no size");
        }
        const auto offset = where.add(is.size);
        if (!offset) fail(at, "too large");
        members.push_back({made.name, made.type, *offset, {}});
    }

    void add_bits(const node& at, const declared& made, point::layout& where,
                  std::vector<member>& members) {
        if (table_[made.type].is != type::kind::integer) fail(at, "bits are of an integer");
        const point::extent size = table_[made.type].size;
        const std::int64_t width = value_of(made.width->parts.at(0));
        const bool truth = made.type == table_.of(c_type::boolean, false);
        const auto most = truth ? 1 : static_cast<std::int64_t>(size.bytes * 8);
        if (width < 0 || width > most) {
            fail(made.width->parts[0], "of 0 to " + std::to_string(most) + " bits");
        }
        if (width == 0 && !made.name.empty()) {
            fail(made.width->parts[0], "a named bit-field has at least one bit");
        }
        const auto bits = where.add_bits(size, static_cast<unsigned>(width), !made.name.empty());
        if (!bits) fail(at, "this bit-field is in nine bytes");
        if (made.name.empty()) return;
        members.push_back({made.name, made.type, bits->offset, unless_all(*bits, size)});
    }

    [[nodiscard]] type_id enumeration(const node& one) {
        const std::string name = one.word.empty() ? "" : "enum " + one.word;
        if (!one.has_body) {
            const auto known = table_.names().find(name);
            if (name.empty() || known == table_.names().end()) {
                fail(one, name.empty() ? "an enumeration has a name or values"
                                       : "there is no '" + name + "'");
            }
            return known->second;
        }
        std::int64_t next = 0, least = 0, most = 0;
        std::vector<trace_ring::reduce::value_names::entry> values;
        for (const node& each : one.parts) {
            if (!each.parts.empty()) next = value_of(each.parts[0]);
            table_.constant(each.word, {next});
            values.push_back({static_cast<std::uint64_t>(next), each.word});
            least = std::min(least, next);
            most = std::max(most, next);
            if (__builtin_add_overflow(next, 1, &next)) next = 0;
        }
        const bool is_signed = least < 0;
        for (const auto& [value, word] : values)
            table_.constant(word, {static_cast<std::int64_t>(value), !is_signed});
        const bool fits = is_signed ? least >= INT32_MIN && most <= INT32_MAX : most <= UINT32_MAX;
        type made =
            table_[table_.of(fits ? c_type::integer : c_type::long_long_integer, is_signed)];
        made.name = name;
        made.values = std::make_shared<const trace_ring::reduce::value_names>(std::move(values));
        const type_id id = table_.add(std::move(made));
        if (!name.empty()) define(name, id, one);
        return id;
    }

    [[nodiscard]] declared declare(const node& one, type_id type) {
        declared made{one.word, type, false, nullptr};
        for (unsigned i = 0; i < one.pointers; ++i) made.type = table_.pointer_to(made.type);
        const node* within = nullptr;
        for (std::size_t i = one.parts.size(); i-- > 0;) {
            const node& part = one.parts[i];
            switch (part.is) {
                case kind::width:
                    made.width = &part;
                    break;
                case kind::array:
                    if (made.is_function) fail(part, "there are no arrays of functions");
                    made.type = array_of(made.type, part);
                    break;
                case kind::function:
                    made.type = type_table::nothing();
                    made.is_function = true;
                    break;
                default:
                    within = &part;
                    break;
            }
        }
        if (within == nullptr) return made;
        declared inner = declare(*within, made.type);
        const bool points = within->pointers != 0;
        inner.is_function = inner.is_function || (made.is_function && !points);
        if (inner.width == nullptr) inner.width = made.width;
        return inner;
    }

    [[nodiscard]] type_id array_of(type_id element, const node& at) {
        const point::extent size = table_[element].size;
        if (size.bytes == 0 && table_[element].is == type::kind::nothing) {
            fail(at, "an array whose elements have no size");
        }
        const std::int64_t count = at.parts.empty() ? 0 : value_of(at.parts[0]);
        if (count < 0) fail(at.parts[0], "less than no elements");
        const auto many = static_cast<std::uint64_t>(count);
        constexpr std::uint64_t most = point::layout::most_bytes;
        if (many > most || (size.bytes != 0 && many > most / size.bytes)) fail(at, "too large");
        return table_.array_of(element, many);
    }

    [[nodiscard]] std::int64_t value_of(const node& one) {
        switch (one.is) {
            case kind::number:
                return one.value;
            case kind::name: {
                const auto found = table_.constants().find(one.word);
                if (found == table_.constants().end()) {
                    fail(one, "there is no constant '" + one.word + "'");
                }
                return found->second.value;
            }
            case kind::size_of: {
                const type_id of = specified(one.parts.at(0));
                const point::extent pointer = point::extent_of(c_type::pointer, table_.mode());
                const point::extent size = one.pointers != 0 ? pointer : table_[of].size;
                if (size.bytes == 0) fail(one, "sizeof of a type without a size");
                return static_cast<std::int64_t>(size.bytes);
            }
            case kind::negated:
                return combined('-', 0, value_of(one.parts.at(0)), one);
            default: {
                std::int64_t all = value_of(one.parts.at(0));
                for (std::size_t i = 1; i < one.parts.size(); ++i) {
                    all = combined(one.word.at(i - 1), all, value_of(one.parts[i]), one.parts[i]);
                }
                return all;
            }
        }
    }

    [[nodiscard]] static std::int64_t combined(char how, std::int64_t a, std::int64_t b,
                                               const node& at) {
        std::int64_t made = 0;
        bool wrong = false;
        switch (how) {
            case '+':
                wrong = __builtin_add_overflow(a, b, &made);
                break;
            case '-':
                wrong = __builtin_sub_overflow(a, b, &made);
                break;
            case '*':
                wrong = __builtin_mul_overflow(a, b, &made);
                break;
            default:
                if (b == 0) fail(at, "a division by 0");
                wrong = b == -1 && a == INT64_MIN;
                if (!wrong) made = how == '/' ? a / b : a % b;
                break;
        }
        if (wrong) fail(at, "a number beyond 64 bits");
        return made;
    }

    type_table& table_;
    std::set<std::string> defined_;  // by the script
};

[[nodiscard]] std::string placed(std::size_t line, std::size_t column, const std::string& what) {
    return "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what;
}
[[nodiscard]] std::pair<std::size_t, std::size_t> place_of(std::string_view script,
                                                           std::size_t at) {
    std::size_t line = 1, column = 1;
    for (const char c : script.substr(0, at)) {
        if (c == '\n') {
            ++line;
            column = 1;
        } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80) {
            ++column;
        }
    }
    return {line, column};
}

}  // namespace

declaration_error::declaration_error(std::string_view script, std::size_t where,
                                     const std::string& what)
    : std::runtime_error(
          placed(place_of(script, where).first, place_of(script, where).second, what)),
      at(where),
      line(place_of(script, where).first),
      column(place_of(script, where).second) {}

void lay_out(const node& all, type_table& into) {
    builder made(into);
    for (const node& one : all.parts) made.add(one);
}

std::size_t declare(std::string_view script, std::size_t from, type_table& lp64,
                    type_table& ilp32) {
    try {
        const declaration_tree made = parse_declarations(script, from);
        lay_out(made.root, lp64);
        lay_out(made.root, ilp32);
        return made.end;
    } catch (const declaration_fault& wrong) {
        throw declaration_error(script, static_cast<std::size_t>(wrong.at - script.data()),
                                wrong.what);
    }
}

}  // namespace trace_clauses
