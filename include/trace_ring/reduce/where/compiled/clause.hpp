// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A condition compiled for the records of one event: what the dictionary decides is computed once,
/// the rest is asked of up to 64 records at once, one bit each. The logic has three values: if a
/// record lacks what a comparison asks for, the answer is unknown.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <trace_ring/reduce/where/compiled/leaf.hpp>

namespace trace_ring::inline v1::reduce::where {

class clause {
public:
    /// Compiles an expression, which must outlive the clause. What makes no sense for records of
    /// this event is unknown.
    [[nodiscard]] static clause make(const expression& of, const setting& where) {
        clause made;
        switch (of.what) {
            case form::all_of:
            case form::any_of:
            case form::none_of:
                made.join(of, where);
                break;
            case form::truth:
                made.decide(of.value.is_zero() ? truth::no : truth::yes);
                break;
            case form::compared:
                if (compared_kinds(of, of.parts[0], of.parts[1], where.type).right.is ==
                    kind::truth) {
                    made.match(of, where);
                    break;
                }
                [[fallthrough]];
            default:
                made.leaf_ = leaf::make(of, where);
        }
        return made;
    }

    /// The answer, if it is the same for all records.
    [[nodiscard]] std::optional<truth> constant() const noexcept {
        return how_ == how::leaf ? leaf_.constant() : std::nullopt;
    }

    /// Asks the records of a block whose bits are in `asked`; the other bits mean nothing.
    [[nodiscard]] masks which(const block& of, std::uint64_t asked) const {
        masks found;
        switch (how_) {
            case how::leaf:
                return leaf_.which(of, asked);
            case how::all:
            case how::any: {  // not all that do not hold
                found.yes = asked;
                for (const auto& part : parts_) {
                    const std::uint64_t open = asked & ~found.no;
                    if (open == 0) break;
                    masks one = part.which(of, open);
                    if (how_ == how::any) std::swap(one.yes, one.no);
                    found.yes &= one.yes;
                    found.no |= one.no & open;
                }
                if (how_ == how::any) std::swap(found.yes, found.no);
                return found;
            }
            case how::none:
                found = parts_[0].which(of, asked);
                return {found.no, found.yes};
            case how::same:
            case how::different: {
                const masks a = parts_[0].which(of, asked);
                const masks b = parts_[1].which(of, asked);
                const std::uint64_t same = (a.yes & b.yes) | (a.no & b.no);
                const std::uint64_t different = (a.yes & b.no) | (a.no & b.yes);
                return how_ == how::same ? masks{same, different} : masks{different, same};
            }
        }
        return found;
    }

private:
    enum class how : std::uint8_t { leaf, all, any, none, same, different };

    void decide(truth what) {
        how_ = how::leaf;
        leaf_ = leaf::decided(what);
        parts_.clear();
    }

    void join(const expression& of, const setting& where) {
        how_ = of.what == form::all_of ? how::all : of.what == form::any_of ? how::any : how::none;
        const bool all = how_ == how::all;
        bool unknown = false;
        for (const auto& part : of.parts) {
            clause one = make(part, where);
            const auto known = one.constant();
            if (how_ == how::none) {
                if (known) return decide(static_cast<truth>(2 - static_cast<int>(*known)));
            } else if (known == (all ? truth::no : truth::yes)) {
                return decide(*known);  // the other parts cannot change it
            } else if (known) {
                if (*known != truth::unknown || unknown) continue;  // cannot change the answer
                unknown = true;
            }
            parts_.push_back(std::move(one));
        }
        if (parts_.empty()) return decide(all ? truth::yes : truth::no);
        if (parts_.size() == 1 && how_ != how::none) {
            clause only = std::move(parts_[0]);
            *this = std::move(only);
        }
    }

    /// Compares the answers of two conditions, for equal or different.
    void match(const expression& of, const setting& where) {
        how_ = of.sign == comparison::equal ? how::same : how::different;
        for (const auto& part : of.parts) parts_.push_back(make(part, where));
        const auto a = parts_[0].constant();
        const auto b = parts_[1].constant();
        if (a == truth::unknown || b == truth::unknown) return decide(truth::unknown);
        if (a && b) decide((*a == *b) == (how_ == how::same) ? truth::yes : truth::no);
    }

    how how_ = how::leaf;
    leaf leaf_;
    std::vector<clause> parts_;
};

}  // namespace trace_ring::inline v1::reduce::where
