// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "http.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace trace_ship {

namespace {

constexpr long connect_seconds = 10;
constexpr std::chrono::seconds last_seconds{10};  // of all requests after a stop

struct curl_library {
    curl_library() { ::curl_global_init(CURL_GLOBAL_DEFAULT); }
    ~curl_library() { ::curl_global_cleanup(); }
};

struct sent_body {
    std::string_view rest;
    const std::function<void()>* before_last = nullptr;
    std::exception_ptr thrown{};
};

std::size_t read_body(char* into, std::size_t size, std::size_t count, void* of) {
    auto& body = *static_cast<sent_body*>(of);
    std::size_t bytes = (std::min)(size * count, body.rest.size());
    if (*body.before_last) {
        if (body.rest.size() == 1) {
            try {
                (*body.before_last)();
            } catch (...) {
                body.thrown = std::current_exception();
                return CURL_READFUNC_ABORT;
            }
        } else if (bytes == body.rest.size() && bytes != 0) {
            --bytes;
        }
    }
    std::memcpy(into, body.rest.data(), bytes);
    body.rest.remove_prefix(bytes);
    return bytes;
}

std::size_t take_answer(char* from, std::size_t size, std::size_t count, void* to) {
    constexpr std::size_t most = std::size_t{256} << 20;
    auto& answer = *static_cast<std::string*>(to);
    if (answer.size() + size * count > most) return 0;
    answer.append(from, size * count);
    return size * count;
}

struct free_list {
    void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};
using header_list = std::unique_ptr<curl_slist, free_list>;

void append(header_list& to, const std::string& header) {
    if (curl_slist* const longer = ::curl_slist_append(to.get(), header.c_str())) {
        static_cast<void>(to.release());
        to.reset(longer);
    } else {
        throw std::bad_alloc();
    }
}

/// On one line, without control characters, and without what follows the cause in ClickHouse's
/// messages.
std::string brief(std::string_view answer) {
    answer = answer.substr(0, answer.find(", Stack trace"));
    answer = answer.substr(0, answer.find(", e.what() ="));
    std::string made(answer.substr(0, 500));
    std::replace_if(
        made.begin(), made.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    while (!made.empty() && made.back() == ' ') made.pop_back();
    return made;
}

}  // namespace

struct http_client::connection {
    CURL* handle = nullptr;
    char error[CURL_ERROR_SIZE] = {};
    const volatile std::sig_atomic_t* stop = nullptr;
    std::chrono::steady_clock::time_point last{};  // when requests end after a stop

    static int ask_whether_to_stop(void* of, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        auto& its = *static_cast<connection*>(of);
        if (*its.stop == 0) return 0;
        const auto now = std::chrono::steady_clock::now();
        if (its.last == std::chrono::steady_clock::time_point{}) its.last = now + last_seconds;
        return *its.stop > 1 || now >= its.last ? 1 : 0;
    }

    connection() {
        static const curl_library library;
        handle = ::curl_easy_init();
        if (handle == nullptr) throw std::bad_alloc();
    }
    ~connection() { ::curl_easy_cleanup(handle); }
    connection(const connection&) = delete;

    template <class T>
    void set(CURLoption option, T value) const {
        if (const CURLcode fault = ::curl_easy_setopt(handle, option, value); fault != CURLE_OK) {
            throw std::runtime_error(::curl_easy_strerror(fault));
        }
    }
};

http_client::http_client(http_settings settings)
    : settings_(std::move(settings)), connection_(std::make_unique<connection>()) {
    const auto& to = *connection_;
    to.set(CURLOPT_NOSIGNAL, 1L);
    to.set(CURLOPT_PROTOCOLS_STR, "http,https");
    to.set(CURLOPT_FOLLOWLOCATION, 0L);
    to.set(CURLOPT_POST, 1L);
    to.set(CURLOPT_TCP_NODELAY, 1L);
    to.set(CURLOPT_CONNECTTIMEOUT, connect_seconds);
    to.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    to.set(CURLOPT_LOW_SPEED_TIME, settings_.silent_seconds);
    to.set(CURLOPT_ERRORBUFFER, connection_->error);
    to.set(CURLOPT_READFUNCTION, &read_body);
    to.set(CURLOPT_WRITEFUNCTION, &take_answer);
    if (!settings_.ca_file.empty()) to.set(CURLOPT_CAINFO, settings_.ca_file.c_str());
    if (!settings_.user.empty()) {
        to.set(CURLOPT_HTTPAUTH, long{CURLAUTH_BASIC});
        to.set(CURLOPT_USERNAME, settings_.user.c_str());
        to.set(CURLOPT_PASSWORD, settings_.password.c_str());
    }
    if (settings_.stop != nullptr) {
        to.set(CURLOPT_NOPROGRESS, 0L);
        to.set(CURLOPT_XFERINFOFUNCTION, &connection::ask_whether_to_stop);
        connection_->stop = settings_.stop;
        to.set(CURLOPT_XFERINFODATA, connection_.get());
    }
}

http_client::~http_client() = default;

std::string http_client::post(const std::string& query, std::string_view body, const extra& more) {
    const auto& to = *connection_;
    header_list headers;
    append(headers, "Expect:");  // a round trip for nothing
    for (const auto& each : settings_.headers) append(headers, each);
    for (const auto& each : more.headers) append(headers, each);
    sent_body sent{body, &more.before_last_byte};
    std::string answer;
    const std::string url = settings_.url + (query.empty() ? "" : '?' + query);
    to.set(CURLOPT_URL, url.c_str());
    to.set(CURLOPT_HTTPHEADER, headers.get());
    to.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    to.set(CURLOPT_READDATA, &sent);
    to.set(CURLOPT_WRITEDATA, &answer);
    connection_->error[0] = '\0';
    const CURLcode fault = ::curl_easy_perform(to.handle);
    to.set(CURLOPT_HTTPHEADER, nullptr);
    if (sent.thrown) std::rethrow_exception(sent.thrown);
    if (fault == CURLE_URL_MALFORMAT || fault == CURLE_UNSUPPORTED_PROTOCOL ||
        fault == CURLE_SSL_CACERT_BADFILE) {  // it never will be better
        throw std::runtime_error(settings_.url + ": " + connection_->error);
    }
    if (fault != CURLE_OK) {
        throw no_answer(
            settings_.url + ": " +
            (connection_->error[0] != '\0' ? connection_->error : ::curl_easy_strerror(fault)));
    }
    long status = 0;
    ::curl_easy_getinfo(to.handle, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        constexpr ::curl_off_t most_seconds = 3600;
        ::curl_off_t seconds = 0;
        ::curl_easy_getinfo(to.handle, CURLINFO_RETRY_AFTER, &seconds);
        throw refusal(settings_.url + ": status " + std::to_string(status) +
                          (answer.empty() ? "" : ": " + brief(answer)),
                      status, std::chrono::seconds((std::clamp)(seconds, {}, most_seconds)));
    }
    return answer;
}

std::string http_client::encoded(std::string_view text) {
    constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    std::string made;
    for (const char c : text) {
        if (plain.find(c) != plain.npos) {
            made += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            made += '%';
            made += "0123456789ABCDEF"[byte >> 4];
            made += "0123456789ABCDEF"[byte & 15];
        }
    }
    return made;
}

}  // namespace trace_ship
