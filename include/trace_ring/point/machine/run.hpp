// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Runs byte code that check.hpp has accepted: on one firing of a trace point, or on up to 64
/// records together, each operation on all of them before the next.
/// @code
///   const auto done = trace_ring::point::run(predicate, firing, {});
///   if (done.value != 0 && done.faults == 0) run(action, firing, output);
/// @endcode

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <trace_ring/atomic.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/number_columns.hpp>
#include <trace_ring/point/machine/word_columns.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1::point {

/// The properties of one firing, and the process's memory:
/// | expression | value | meaning |
/// |---|---|---|
/// | `f.word(context_word)` | `std::uint64_t` | as context_word says |
/// | `f.argument(n)` | `std::optional<std::uint64_t>` | by the mode's calling convention |
/// | `f.reg(n)` | `std::uint64_t` | numbered as in code.hpp; 0 if the mode has no such register |
/// | `f.read(address, into)` | `bool` | all of `into` was read |
/// | `f.read_text(address, into)` | `std::optional<std::size_t>` | its length, also beyond `into` |
/// | `f.stack(into)` | `std::size_t` | how many return addresses it stored |
/// None may throw. They are called in the order of the code.
template <class F>
concept firing = requires(F& f, context_word word, unsigned n, std::uint64_t address,
                          std::span<std::byte> into, std::span<std::uint64_t> addresses) {
    { f.word(word) } -> std::same_as<std::uint64_t>;
    { f.argument(n) } -> std::same_as<std::optional<std::uint64_t>>;
    { f.reg(n) } -> std::same_as<std::uint64_t>;
    { f.read(address, into) } -> std::same_as<bool>;
    { f.read_text(address, into) } -> std::same_as<std::optional<std::size_t>>;
    { f.stack(addresses) } -> std::same_as<std::size_t>;
};

/// The reads that code makes from the records whose bits are set in `asked`. For the other records,
/// the first two may store any value.
/// | expression | meaning |
/// |---|---|
/// | `r.field(type, at, into)` | the numbers at byte `at` behind the header |
/// | `r.within(n, words)` | the truths that they lie in the ranges number n, in their place |
/// | `r.field_within(type, at, n, into)` | both together: true; or false, and nothing is done |
/// | `r.word(n, asked, into)` | the context's word number n |
/// | `r.number(n, asked, bits, kinds)` | its number n, of a number_kind each |
template <class R>
concept records = requires(R& r, field_type type, std::uint32_t n, std::uint64_t asked,
                           record_column& into) {
    r.field(type, n, into);
    r.within(n, into);
    { r.field_within(type, n, n, into) } -> std::same_as<bool>;
    r.word(n, asked, into);
    r.number(n, asked, into, into);
};

/// The highest bit of the length: the text was longer than its place.
inline constexpr std::uint16_t text_was_cut = 0x8000;

/// The result of a run.
struct outcome {
    std::uint64_t value = 0;   ///< the result of a predicate; 0 for an action
    std::uint32_t faults = 0;  ///< failed reads, and divisions by zero
};

namespace impl {

template <std::size_t N, class Asked>
class machine {
public:
    static_assert(N == (firing<Asked> ? 1 : records_at_once));

    machine(Asked& at, std::span<column<N>> stack, std::span<std::byte> output)
        : at_(at), begin_(stack.data()), output_(output) {}

    void run(code of, std::uint64_t asked) {
        active_ = all_ = asked;
        count_ = as_size(std::bit_width(asked));
        for (std::size_t i = 0; i < of.size(); ++i) {
            if constexpr (N != 1) {
                if (i == next_) wake(i);
            }
            const instruction& one = of[i];
            switch (one.code) {
                case op::finish:
                    return;
                case op::skip:
                    i = skip(i, one, active_);
                    break;
                case op::skip_if_zero:
                    --end_;
                    i = skip(i, one, zeros(*end_));
                    break;
                default:
                    if (N != 1 && active_ != all_) {
                        step_some(one);
                    } else if (one.code != op::field || !field_within(of, i)) {
                        step(one);
                    }
            }
        }
    }

    [[nodiscard]] std::uint32_t faults() const noexcept { return faults_; }
    /// Whether a word is left.
    [[nodiscard]] bool has_result() const noexcept { return end_ != begin_; }

private:
    // --- Ways through the code ---

    [[nodiscard]] std::uint64_t zeros(const column<N>& x) const noexcept {
        std::uint64_t found = 0;
        for_first<N>(count_, [&](std::size_t k) { found |= x[k] == 0 ? record_bits[k] : 0; });
        return found & active_;
    }
    /// The records whose bits are set continue `one.value` instructions further on: the others wait
    /// for them there, or they wait for the others. Returns the number of the last instruction
    /// executed.
    [[nodiscard]] std::size_t skip(std::size_t i, const instruction& one, std::uint64_t which) {
        const std::size_t target = i + 1 + static_cast<std::size_t>(one.value);
        if constexpr (N == 1) return which != 0 ? target - 1 : i;
        for (std::uint64_t left = which; left != 0; left &= left - 1) {
            waits_[static_cast<std::size_t>(std::countr_zero(left))] = {target, end_};
        }
        if (which != 0 && target < next_) next_ = target;
        active_ &= ~which;
        return active_ == 0 ? next_ - 1 : i;
    }
    void wake(std::size_t i) {
        next_ = ~std::size_t{0};
        for (std::uint64_t left = all_ & ~active_; left != 0; left &= left - 1) {
            const auto k = static_cast<std::size_t>(std::countr_zero(left));
            if (waits_[k].at == i) {
                active_ |= std::uint64_t{1} << k;
                end_ = waits_[k].end;  // the same for all others that are here
            } else if (waits_[k].at < next_) {
                next_ = waits_[k].at;
            }
        }
    }
    /// A step of some records: changed values of the others are restored.
    void step_some(const instruction& one) {
        if (one.code >= op::number || one.code == op::record_number) return step(one);
        const stack_effect effect = effect_of(one.code);
        column<N>* const changed = end_ - effect.takes;
        std::array<column<N>, 2> before;
        for (std::size_t n = 0; n < effect.leaves; ++n) {
            std::copy_n(changed[n].begin(), count_, before[n].begin());
        }
        step(one);
        for (std::size_t n = 0; n < effect.leaves; ++n) {
            for (std::size_t k = 0; k < count_; ++k) {
                if ((active_ >> k & 1) == 0) changed[n][k] = before[n][k];
            }
        }
    }

    void step(const instruction& one) {
        if (column<N>* const end = compute(one, end_, count_)) {
            end_ = end;
        } else if constexpr (firing<Asked>) {
            ask_firing(one);
        } else {
            ask_records(one);
        }
    }

    // --- Firings ---

    [[nodiscard]] std::uint64_t pop() noexcept { return (*--end_)[0]; }
    void push_word(std::uint64_t word) noexcept { (*end_++)[0] = word; }
    void ask_firing(const instruction& one) {
        const auto offset = static_cast<std::size_t>(one.value);
        switch (one.code) {
            case op::context: {
                const auto which = static_cast<context_word>(one.what);
                const std::uint64_t value = at_.word(which);
                const bool missing = which == context_word::elapsed && value == unknown_elapsed;
                if (missing) ++faults_;
                return push_word(missing ? 0 : value);
            }
            case op::argument: {
                const std::optional<std::uint64_t> value = at_.argument(one.what);
                if (!value) ++faults_;
                return push_word(value.value_or(0));
            }
            case op::reg:
                return push_word(at_.reg(one.what));
            case op::load:
                return push_word(read(pop() + static_cast<std::uint64_t>(std::int64_t{one.value}),
                                      static_cast<width>(one.what)));
            case op::store: {
                const std::uint64_t x = pop();
                std::memcpy(output_.data() + offset, &x, bytes_of(static_cast<width>(one.what)));
                return;
            }
            case op::store_text: {
                const auto into = output_.subspan(offset + 2, one.size);
                const std::optional<std::size_t> length = at_.read_text(pop(), into);
                if (!length) ++faults_;
                const bool cut = length && *length > into.size();
                const std::size_t kept = cut ? into.size() : length.value_or(0);
                const auto told = static_cast<std::uint16_t>(kept | (cut ? text_was_cut : 0U));
                // Clears the bytes after the text, and those read from an unreadable one.
                std::memset(into.data() + kept, 0, into.size() - kept);
                std::memcpy(output_.data() + offset, &told, sizeof told);
                return;
            }
            case op::store_bytes: {
                const auto into = output_.subspan(offset, one.size);
                if (!at_.read(pop(), into)) {
                    ++faults_;
                    std::memset(into.data(), 0, into.size());
                }
                return;
            }
            case op::store_stack: {
                std::array<std::uint64_t, most_output / 8> addresses{};
                const std::size_t most = one.size / 8U;
                const std::size_t found = at_.stack(std::span(addresses).first(most));
                if (found < most) std::memset(&addresses[found], 0, 8 * (most - found));
                std::memcpy(output_.data() + offset, addresses.data(), one.size);
                return;
            }
            case op::store_faults: {
                const auto told = static_cast<std::uint16_t>(faults_);
                std::memcpy(output_.data() + offset, &told, sizeof told);
                return;
            }
            default: {  // divisions
                const std::uint64_t x = pop();
                const std::uint64_t w = pop();
                if (x == 0) ++faults_;
                push_word(x == 0 ? 0 : quotient(one.code, w, x));
            }
        }
    }
    [[nodiscard]] std::uint64_t read(std::uint64_t address, width how) {
        std::uint64_t value = 0;
        std::array<std::byte, 8> bytes{};
        if (!at_.read(address, std::span(bytes).first(bytes_of(how)))) {
            ++faults_;
            return value;
        }
        std::memcpy(&value, bytes.data(), bytes_of(how));
        return narrowed(value, how);
    }

    // --- Records ---

    /// Nearly all conditions compare a field with a constant: a combined operation takes half the
    /// time.
    [[nodiscard]] bool field_within(code of, std::size_t& i) {
        if constexpr (!firing<Asked>) {
            const instruction& one = of[i];
            const instruction& next = of[i + 1];
            if (next.code != op::within ||
                !at_.field_within(static_cast<field_type>(one.what),
                                  static_cast<std::uint32_t>(one.value),
                                  static_cast<std::uint32_t>(next.value), *end_)) {
                return false;
            }
            ++end_;
            ++i;
            return true;
        }
        return false;
    }
    void ask_records(const instruction& one) {
        const auto n = static_cast<std::uint32_t>(one.value);
        switch (one.code) {
            case op::copy:
                std::copy_n(end_[-1].begin(), count_, end_[0].begin());
                ++end_;
                break;
            case op::field:
                at_.field(static_cast<field_type>(one.what), n, *end_++);
                break;
            case op::record_word:
                at_.word(n, active_, *end_++);
                break;
            case op::record_number:
                at_.number(n, active_, end_[0], end_[1]);
                end_ += 2;
                break;
            case op::within:
                at_.within(n, end_[-1]);
                break;
            case op::same_truth:
                end_ = both(end_, count_, [](std::uint64_t w, std::uint64_t x) {
                    const bool known = w + 1 <= 1 && x + 1 <= 1;
                    return known ? 0 - std::uint64_t{w == x} : truth_unknown;
                });
                break;
            default:
                end_ = compute_numbers(one, active_, end_);
        }
    }

    Asked& at_;
    column<N>* begin_;
    column<N>* end_ = begin_;  // of the stack
    std::span<std::byte> output_;
    std::uint32_t faults_ = 0;
    std::uint64_t all_ = 0;
    std::size_t count_ = 0;  // up to the last of them
    std::uint64_t active_ = 0;
    struct place {
        std::size_t at;
        column<N>* end;
    };
    union {
        std::array<place, N> waits_;  // where each record that skips instructions continues
    };
    std::size_t next_ = ~std::size_t{0};  // the first of these places
};

}  // namespace impl

/// Runs code that `find_fault` accepted, for the purpose that it was checked for. `output` has at
/// least the number of bytes given there; bytes that the code does not store become 0. Time is
/// bounded by the code's length and the output's. Signal-safe if the firing is.
template <firing Firing>
[[nodiscard]] outcome run(code of, Firing& at, std::span<std::byte> output) noexcept {
    std::array<column<1>, most_depth> stack;  // not set: each word is written before it is read
    if (!output.empty()) std::memset(output.data(), 0, output.size());
    impl::machine<1, Firing> runs(at, stack, output);
    runs.run(of, 1);
    return {runs.has_result() ? stack[0][0] : 0, runs.faults()};
}

/// Runs a predicate that `find_fault` accepted on the records whose bits are set. `stack` has as
/// many columns as it was checked for; the first one has the answers afterwards; answers of other
/// records are undefined. Throws what the records throw.
template <records Records>
void run(code of, Records& at, std::uint64_t asked, std::span<record_column> stack) {
    impl::machine<records_at_once, Records>(at, stack, {}).run(of, asked);
}

}  // namespace trace_ring::inline v1::point
