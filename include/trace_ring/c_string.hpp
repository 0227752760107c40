// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Ownership of a C string that is set once, at set-up, and passed to system calls. std::string
/// would be a quarter of the code of a set-up that used it.

#include <cstdlib>
#include <cstring>

#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::impl {

class owned_text {
public:
    owned_text() noexcept = default;
    owned_text(const owned_text&) = delete;
    owned_text& operator=(const owned_text&) = delete;
    ~owned_text() { take(nullptr); }

    /// Copies the text. Throws std::bad_alloc.
    void set(const char* text) {
        char* const copy = ::strdup(text);
        if (copy == nullptr) fail_memory(text, std::strlen(text) + 1);
        take(copy);
    }
    /// Takes what malloc gave.
    void take(char* text) noexcept {
        if (text_ != nullptr) std::free(text_);
        text_ = text;
    }
    [[nodiscard]] bool empty() const noexcept { return text_ == nullptr || *text_ == '\0'; }
    [[nodiscard]] const char* c_str() const noexcept { return text_ == nullptr ? "" : text_; }

private:
    char* text_ = nullptr;
};

}  // namespace trace_ring::inline v1::impl
