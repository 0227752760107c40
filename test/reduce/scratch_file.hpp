// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A file of a test's own, gone with the test.

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace trace_ring_test {

class scratch_file {
public:
    scratch_file()
        : path_((std::filesystem::temp_directory_path() / "trace_ring.XXXXXX").string()) {
        const int fd = ::mkstemp(path_.data());
        if (fd < 0) throw std::runtime_error("cannot make " + path_);
        ::close(fd);
    }
    scratch_file(const scratch_file&) = delete;
    ~scratch_file() { remove(); }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    void remove() const noexcept { ::unlink(path_.c_str()); }
    void write(std::string_view text) const {
        std::ofstream out(path_, std::ios::binary | std::ios::trunc);
        if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
            throw std::runtime_error("cannot write " + path_);
        }
    }
    [[nodiscard]] std::string read() const {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

private:
    std::string path_;
};

}  // namespace trace_ring_test
