// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Specifies the trace points of a clause: a tuple `@@type:fields:location`, of globs.
/// @code
///   @@uft:*:libc.so.6:malloc:entry      a function's entry, in any process
///   @@syscall:4711:open*:exit           system calls of one process, when they return
///   @@usdt:*:"a name: with colons":gc   a field in quotes
///   @@begin                             once, before the first firing; and @@end after the last
/// @endcode
/// The source of a type defines the meaning of its fields; here they are only names. Source: AIX
/// ProbeVue, whose tuples have at least three fields.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include <trace_ring/glob.hpp>

namespace trace_ring::inline v1::point {

/// Where a trace point is: a tuple of fields, with globs.
class specification {
public:
    static constexpr std::size_t most_fields = 8;  ///< the longest tuple

    /// An error in the text.
    struct mistake {
        std::size_t at = 0;          ///< bytes from the text's begin
        const char* what = nullptr;  ///< what is wrong; null if nothing is
    };

    /// Reads a tuple, which is the whole text; it must outlive the result. An error is stored in
    /// `why`, whose `what` is null if there is none. Linear; no allocation.
    [[nodiscard]] static constexpr specification parse(std::string_view text,
                                                       mistake& why) noexcept {
        specification made;
        why = {};
        if (!text.starts_with("@@")) {
            why = {0, "a trace point begins with @@"};
            return made;
        }
        std::size_t at = 2;
        while (true) {
            if (made.count_ == most_fields) {
                why = {at, "more than eight fields"};
                return made;
            }
            const bool quoted = at < text.size() && text[at] == '"';
            std::size_t end = text.find(quoted ? '"' : ':', at + (quoted ? 1 : 0));
            if (quoted && end == std::string_view::npos) {
                why = {at, "a quote without an end"};
                return made;
            }
            if (end == std::string_view::npos) end = text.size();
            const std::size_t begin = at + (quoted ? 1 : 0);
            if (end == begin) {
                why = {at, "an empty field: any is written *"};
                return made;
            }
            made.fields_[made.count_++] = text.substr(begin, end - begin);
            at = end + (quoted ? 1 : 0);
            if (at == text.size()) break;
            if (text[at] != ':') {
                why = {at, "':' is expected"};
                return made;
            }
            ++at;
        }
        const bool once = made.is("begin") || made.is("end");
        if (once && made.count_ != 1) why = {2, "begin and end have no further fields"};
        if (!once && made.count_ < 3) why = {text.size(), "a tuple has at least three fields"};
        return made;
    }

    /// The tuple's fields, its type the first.
    [[nodiscard]] constexpr std::span<const std::string_view> fields() const noexcept {
        return std::span(fields_).first(count_);
    }
    /// Whether the first field is this type of point.
    [[nodiscard]] constexpr bool is(std::string_view type) const noexcept {
        return count_ != 0 && fields_[0] == type;
    }
    /// Whether it matches a point with these fields: the same number, and each matches.
    [[nodiscard]] bool wants(std::span<const std::string_view> point) const noexcept {
        if (point.size() != count_) return false;
        for (std::size_t i = 0; i < count_; ++i) {
            if (!matches_glob(fields_[i], point[i])) return false;
        }
        return true;
    }

private:
    std::array<std::string_view, most_fields> fields_{};
    std::size_t count_ = 0;
};

}  // namespace trace_ring::inline v1::point
