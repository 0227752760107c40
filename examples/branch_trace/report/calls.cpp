// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "calls.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "branch_code.hpp"

namespace branches {
namespace {

struct frame {
    std::size_t node = 0;
    place caller;        ///< the place of the call; without an object: the bottom
    bool exact = false;  ///< it returns exactly to `caller`: a handler
};

class follower {
public:
    explicit follower(code& of) : code_(of) { out_.nodes.emplace_back(); }

    void take(const branch& b) {
        auto& stack = stacks_[b.thread];
        if (!b.follows || stack.empty()) restart(stack, b.from != 0 ? b.from : b.to);
        if (!b.taken()) return;
        ++out_.nodes[stack.back().node].self;
        if (is_call(b.kind)) {
            ++out_.calls;
            enter(stack, b, false);
        } else if (b.kind == branch_kind::signal || b.kind == branch_kind::interrupt ||
                   b.kind == branch_kind::exception) {
            enter(stack, b, true);
        } else if (b.kind == branch_kind::function_return ||
                   b.kind == branch_kind::interrupt_return) {
            ++out_.returns;
            leave(stack, b);
        } else {
            jump(stack, b);
        }
    }

    [[nodiscard]] call_tree finish() {
        auto& nodes = out_.nodes;
        for (auto& node : nodes) node.inclusive = node.self;
        for (std::size_t i = nodes.size(); i-- > 1;) {
            nodes[nodes[i].parent].inclusive += nodes[i].inclusive;
        }
        for (auto& node : nodes) {
            std::stable_sort(node.children.begin(), node.children.end(),
                             [&](std::size_t a, std::size_t b) {
                                 return nodes[a].inclusive > nodes[b].inclusive;
                             });
        }
        return std::move(out_);
    }

private:
    using call_stack = std::vector<frame>;
    static constexpr std::size_t most = 1000;

    /// The first of the innermost frames with this property, counted from the top; empty: none.
    template <class Wanted>
    [[nodiscard]] static std::optional<std::size_t> innermost(const call_stack& stack,
                                                              Wanted wanted) {
        const auto end = stack.rbegin() + static_cast<std::ptrdiff_t>(std::min(stack.size(), most));
        const auto found = std::find_if(stack.rbegin(), end, wanted);
        if (found == end) return std::nullopt;
        return static_cast<std::size_t>(found - stack.rbegin());
    }

    /// The child for `function`, or an ancestor that is already for this function.
    [[nodiscard]] std::size_t below(std::size_t parent, function_id function) {
        for (std::size_t up = parent; up != 0; up = out_.nodes[up].parent) {
            if (out_.nodes[up].function == function && function != 0) return up;
        }
        const std::size_t depth = out_.nodes[parent].depth + 1;
        if (depth > most) return parent;
        const auto [at, is_new] =
            children_.try_emplace(std::pair(parent, function), out_.nodes.size());
        if (is_new) {
            out_.nodes[parent].children.push_back(at->second);
            out_.nodes.push_back({function, parent, depth, {}, 0, 0, 0});
        }
        return at->second;
    }

    /// Nothing is known except the place of the thread.
    void restart(call_stack& stack, place_id where) {
        stack.clear();
        stack.push_back({below(0, code_.function_of(where)), {}, false});
    }

    void enter(call_stack& stack, const branch& b, bool exact) {
        const std::size_t node = below(stack.back().node, code_.function_from(b.to));
        ++out_.nodes[node].calls;
        stack.push_back({node, code_.at(b.from), exact});
    }

    /// Whether a return from this frame goes to this place.
    [[nodiscard]] static bool returns_to(const frame& f, const place& there) {
        if (f.caller.object != there.object || f.caller.object == 0) return false;
        const std::uint64_t distance = there.address - f.caller.address;
        return f.exact ? distance == 0 : distance > 0 && distance <= longest_instruction;
    }

    void leave(call_stack& stack, const branch& b) {
        const place& there = code_.at(b.to);
        const auto gone = innermost(stack, [&](const frame& f) { return returns_to(f, there); });
        if (gone) {
            out_.unwound += *gone;
            stack.resize(stack.size() - *gone - 1);
            return;
        }
        ++out_.unmatched;
        const function_id function = code_.function_of(b.to);
        if (stack.size() > 1 && back_to(stack, function)) return;
        if (stack.size() == 1) {
            restart_at(stack, function);
            return;
        }
        replace(stack, code_.function_from(b.to));
    }

    void jump(call_stack& stack, const branch& b) {
        const function_id function = code_.function_of(b.to);
        if (function == 0 || function == code_.function_of(b.from) ||
            function == out_.nodes[stack.back().node].function) {
            return;
        }
        if (code_.function(function).start != code_.at(b.to).address && back_to(stack, function)) {
            return;
        }
        ++out_.tail_calls;
        replace(stack, function);
        ++out_.nodes[stack.back().node].calls;
    }

    /// If this function is on the stack, removes all frames that it has called.
    [[nodiscard]] bool back_to(call_stack& stack, function_id function) {
        if (function == 0) return false;
        const auto gone = innermost(
            stack, [&](const frame& f) { return out_.nodes[f.node].function == function; });
        if (!gone) return false;
        out_.unwound += *gone;
        stack.resize(stack.size() - *gone);
        return true;
    }
    /// The caller of the bottom frame, which was unknown.
    void restart_at(call_stack& stack, function_id function) {
        stack.back() = {below(0, function), {}, false};
    }
    /// Another function replaces the innermost one, and returns where that one would have returned.
    void replace(call_stack& stack, function_id function) {
        const std::size_t parent = stack.size() > 1 ? stack[stack.size() - 2].node : 0;
        stack.back().node = below(parent, function);
    }

    code& code_;
    call_tree out_;
    std::unordered_map<std::uint32_t, call_stack> stacks_;
    std::map<std::pair<std::size_t, function_id>, std::size_t> children_;
};

}  // namespace

call_tree follow_calls(std::span<const branch> branches, code& of) {
    follower f(of);
    for (const auto& b : branches) f.take(b);
    return f.finish();
}

}  // namespace branches
