// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Requests to one HTTP server, by libcurl.

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trace_ship {

/// No answer came, so it is not known whether the server has done what it was asked.
struct no_answer : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// The server answered with an error.
struct refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
    refusal(const std::string& what, long code, std::chrono::seconds after)
        : std::runtime_error(what), status(code), retry_after(after) {}

    long status = 0;                      ///< of the HTTP answer; 0: another fault
    std::chrono::seconds retry_after{0};  ///< how long the server asks to wait, at most an hour
};

struct http_settings {
    std::string url{};                   ///< http[s]://HOST[:PORT]/[PATH]
    std::string ca_file{};               ///< whose certificates are trusted; empty: the machine's
    std::vector<std::string> headers{};  ///< with credentials, for each request
    std::string user{};                  ///< for Basic authentication; empty: none
    std::string password{};
    long silent_seconds = 120;  ///< after so long without a byte a request has no answer
    /// 1: all requests end within ten seconds; above 1: at once. Null: never.
    const volatile std::sig_atomic_t* stop = nullptr;
};

/// Keeps its connection open. Used by one thread.
class http_client {
public:
    explicit http_client(http_settings settings);
    ~http_client();
    http_client(const http_client&) = delete;

    /// What a POST takes in addition to its body.
    struct extra {
        std::vector<std::string> headers{};
        /// Is called when all of the body but its last byte was sent. If it throws, that byte is
        /// never sent, and `post` throws the same.
        std::function<void()> before_last_byte{};
    };
    /// Sends `body` to the URL with `query` (encoded, without '?') behind it; returns the answer's
    /// body. Throws no_answer, refusal, or what `before_last_byte` throws.
    std::string post(const std::string& query, std::string_view body, const extra& more);
    std::string post(const std::string& query, std::string_view body) {
        return post(query, body, {});
    }

    /// Text for a URL.
    [[nodiscard]] static std::string encoded(std::string_view text);
    /// NAME=TEXT, encoded.
    [[nodiscard]] static std::string parameter(std::string_view name, std::string_view text) {
        return std::string(name) + '=' + encoded(text);
    }

private:
    struct connection;

    http_settings settings_;
    std::unique_ptr<connection> connection_;
};

}  // namespace trace_ship
