// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The name of a file that is followed. A program that is started again creates a new file under
/// the name; the old one loses the name, or has another.

#include <sys/stat.h>

#include <exception>
#include <string>

#include <trace_ring/reduce/source.hpp>

#include "../shown.hpp"
#include "cptrap/choice.hpp"
#include "kinds/file_kind.hpp"
#include "options.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

class followed_name {
public:
    explicit followed_name(const reduce::source& of) : name_(of.name()) {
        settled_ = of.fd() < 0 || ::fstat(of.fd(), &file_) != 0;
    }

    /// Another file has the name now, and was not reported yet.
    [[nodiscard]] bool is_taken() const noexcept {
        struct ::stat now {};
        return !settled_ && ::stat(name_.c_str(), &now) == 0 && S_ISREG(now.st_mode) &&
               (now.st_dev != file_.st_dev || now.st_ino != file_.st_ino);
    }
    /// That, and it may be that it is just being made.
    [[nodiscard]] bool is_awaited() const noexcept { return failures_ < patience && is_taken(); }
    /// The other file is followed, too.
    [[nodiscard]] bool is_settled() const noexcept { return settled_; }

    /// For a name that is taken. Where the other file is wanted, calls `go_on(source)`, which may
    /// throw what is in the way: then it is tried again next time. Else says that it is not shown.
    template <class GoOn>
    void pass_on(const options& wanted, file_kind kind, GoOn&& go_on) {
        constexpr const char* taken = ": another file has this name now";
        if (!wanted.retry) {
            complain("trace-reduce",
                     name_ + taken + ", which is not shown (--retry goes on with it)");
            settled_ = true;
            return;
        }
        std::string why = "it is of another kind";
        try {
            auto file = reduce::source::open(name_);
            if (recognise(file, lengths_of(wanted), wanted.has_spool_options()) == kind) {
                settled_ = true;
                go_on(std::move(file));
                return;
            }
        } catch (const std::exception& error) {
            settled_ = false;
            why = error.what();
        }
        if (++failures_ == patience) {
            complain("trace-reduce", name_ + taken + ", which cannot be shown yet: " + why);
        }
    }

private:
    static constexpr int patience = 20;  ///< looks, for a file that is just being made

    std::string name_;
    struct ::stat file_ {};
    bool settled_ = false;
    int failures_ = 0;
};

}  // namespace trace_reduce
