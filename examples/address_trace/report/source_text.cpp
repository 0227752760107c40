// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "source_text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <heap_recorder/report/quantity.hpp>
#include <system_error>
#include <tuple>

#include <trace_ring/policy/storage/mapping.hpp>

namespace address_trace {

source_text::source_text(const std::string& path, std::size_t most) {
    if (!read(path, most)) {
        if (problem_.empty()) problem_ = std::generic_category().message(errno);
        return;
    }
    // A source line cannot contain this byte, but object files and pictures are full of it.
    if (text_.find('\0') != std::string::npos) {
        problem_ = "a binary file";
        return;
    }
    find_lines();
}

bool source_text::read(const std::string& path, std::size_t most) {
    // Checked by name first, because opening a device may have an effect.
    if (::stat(path.c_str(), &status_) != 0) return false;
    const trace_ring::file_descriptor file(
        S_ISREG(status_.st_mode)
            ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            : -1);
    if (S_ISREG(status_.st_mode) && (!file || ::fstat(file.get(), &status_) != 0)) return false;
    if (!S_ISREG(status_.st_mode)) {
        problem_ = S_ISDIR(status_.st_mode) ? "a directory" : "not a regular file";
        return false;
    }
    const auto bytes = static_cast<std::size_t>(status_.st_size);
    if (bytes > most) {
        problem_ = "too large: " + heap::bytes_text(bytes);
        return false;
    }
    text_.resize(bytes);
    std::size_t done = 0;
    while (done < text_.size()) {
        const auto got = ::read(file.get(), text_.data() + done, text_.size() - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        if (got == 0) break;  // the file has become shorter
        done += static_cast<std::size_t>(got);
    }
    text_.resize(done);
    return true;
}

void source_text::find_lines() {
    for (std::size_t at = 0; at < text_.size();) {
        begins_.push_back(static_cast<std::uint32_t>(at));
        at = text_.find_first_of("\r\n", at);
        if (at == std::string::npos) break;
        at += text_.compare(at, 2, "\r\n") == 0 ? 2 : 1;
    }
}

std::string_view source_text::line(std::size_t number) const {
    const std::string_view rest = std::string_view(text_).substr(begins_.at(number - 1));
    return rest.substr(0, rest.find_first_of("\r\n"));
}

bool source_text::is_newer_than(const std::string& object) const {
    struct stat other {};
    if (!problem_.empty() || ::stat(object.c_str(), &other) != 0) return false;
    const auto when = [](const struct stat& of) {
        return std::tuple(of.st_mtim.tv_sec, of.st_mtim.tv_nsec);
    };
    return when(status_) > when(other);
}

}  // namespace address_trace
