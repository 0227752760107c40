// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "state_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <trace_ring/loss.hpp>

namespace trace_ship {

namespace {

constexpr std::string_view first_line = "trace-ship state 1\n";
constexpr std::string_view last_line = "end\n";
constexpr std::string_view ending = ".state";

class file_descriptor {
public:
    explicit file_descriptor(int fd) : fd_(fd) {}
    file_descriptor(const file_descriptor&) = delete;
    ~file_descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

/// A line of a word, and numbers; each has a blank before it.
class line_reader {
public:
    explicit line_reader(std::string_view line)
        : word_(line.substr(0, line.find(' '))), rest_(line.substr(word_.size())) {}
    [[nodiscard]] std::string_view word() const noexcept { return word_; }
    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
    /// False if there is none.
    template <class T>
    [[nodiscard]] bool number(T& value) {
        if (rest_.empty() || rest_[0] != ' ') return false;
        const char* const end = rest_.data() + rest_.size();
        const auto [last, fault] = std::from_chars(rest_.data() + 1, end, value);
        if (fault != std::errc()) return false;
        rest_.remove_prefix(static_cast<std::size_t>(last - rest_.data()));
        return true;
    }

private:
    std::string_view word_;
    std::string_view rest_;
};

template <class... Numbers>
void append_line(std::string& text, const char* word, Numbers... numbers) {
    text += word;
    ((text += ' ', text += std::to_string(numbers)), ...);
    text += '\n';
}

std::string text_of(const trace_state& state) {
    std::string text(first_line);
    for (const auto& [number, lane] : state.arrived.lanes) {
        append_line(text, "lane", number, lane.next, lane.positions);
        for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
            const auto count = lane.counted[static_cast<trace_ring::loss_cause>(i)];
            if (count != 0) append_line(text, "lost", number, i, count);
        }
    }
    for (const auto& [lane, at, where] : state.arrived.places) {
        append_line(text, "place", lane, at, where);
    }
    for (const auto& [lane, at] : state.open) append_line(text, "open", lane, at);
    for (const auto& [lane, at] : state.left) append_line(text, "left", lane, at);
    text += last_line;
    return text;
}

/// Adds what a line has. False if it has something else.
bool add_line(trace_state& state, std::string_view text) {
    line_reader line(text);
    std::uint32_t lane = 0;
    if (!line.number(lane)) return false;
    if (line.word() == "lane") {
        auto& of = state.arrived.lanes[lane];
        return line.number(of.next) && line.number(of.positions) && line.at_end();
    }
    std::uint64_t first = 0;
    if (!line.number(first)) return false;
    std::uint64_t second = 0;
    if (line.word() == "lost") {
        if (first >= trace_ring::loss_cause_count || !line.number(second)) return false;
        state.arrived.lanes[lane].counted.add(static_cast<trace_ring::loss_cause>(first), second);
    } else if (line.word() == "place") {
        if (!line.number(second)) return false;
        state.arrived.places.emplace(lane, first, second);
    } else if (line.word() == "open") {
        state.open.emplace(lane, first);
    } else if (line.word() == "left") {
        state.left.emplace(lane, first);
    } else {
        return false;
    }
    return line.at_end();
}

/// False if the text is damaged.
bool read_state(std::string_view text, trace_state& state) {
    if (!text.starts_with(first_line) || !text.ends_with(last_line)) return false;
    text.remove_prefix(first_line.size());
    text.remove_suffix((std::min)(last_line.size(), text.size()));
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end == text.npos || !add_line(state, text.substr(0, end))) return false;
        text.remove_prefix(end + 1);
    }
    return true;
}

}  // namespace

state_folder::state_folder(std::string path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
        throw std::system_error(errno, std::generic_category(), path_);
    }
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path_);
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
    const int fault = errno;
    ::close(fd_);
    if (fault != EWOULDBLOCK) throw std::system_error(fault, std::generic_category(), path_);
    throw std::runtime_error(path_ + ": another trace-ship keeps its state in this folder");
}

state_folder::~state_folder() {
    ::close(fd_);
}

void state_folder::fail(const std::string& name) const {
    throw std::system_error(errno, std::generic_category(), path_ + '/' + name);
}

trace_state state_folder::load(const std::string& trace) const {
    const std::string name = trace + std::string(ending);
    const file_descriptor file(::openat(fd_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    trace_state state;
    if (file.get() < 0) {
        if (errno == ENOENT) return state;
        fail(name);
    }
    std::string text;
    for (;;) {
        constexpr std::size_t part = 65536;
        const std::size_t size = text.size();
        text.resize(size + part);
        const ::ssize_t count = ::read(file.get(), text.data() + size, part);
        if (count < 0 && errno != EINTR) fail(name);
        text.resize(size + static_cast<std::size_t>((std::max)(count, ::ssize_t{0})));
        if (count == 0) break;
    }
    if (!read_state(text, state)) {
        throw std::runtime_error(path_ + '/' + name +
                                 ": it is damaged; without it the whole trace is sent again");
    }
    return state;
}

void state_folder::save(const std::string& trace, const trace_state& state) const {
    const std::string name = trace + std::string(ending);
    const std::string part = name + ".part";
    const std::string text = text_of(state);
    {
        const file_descriptor file(::openat(
            fd_, part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file.get() < 0) fail(part);
        for (std::string_view rest = text; !rest.empty();) {
            const ::ssize_t count = ::write(file.get(), rest.data(), rest.size());
            if (count < 0 && errno != EINTR) fail(part);
            rest.remove_prefix(static_cast<std::size_t>((std::max)(count, ::ssize_t{0})));
        }
        if (::fsync(file.get()) != 0) fail(part);
    }
    if (::renameat(fd_, part.c_str(), fd_, name.c_str()) != 0) fail(name);
}

void state_folder::sync() const {
    if (::fsync(fd_) != 0) fail("");
}

std::vector<state_folder::entry> state_folder::entries() const {
    std::vector<entry> found;
    const int fd = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::DIR* const all = fd < 0 ? nullptr : ::fdopendir(fd);
    if (all == nullptr) {
        const file_descriptor closed(fd);
        fail("");
    }
    const auto now = std::time(nullptr);
    while (const ::dirent* const each = ::readdir(all)) {
        const std::string_view name(each->d_name);
        struct stat status {};
        if (!name.ends_with(ending) || ::fstatat(fd_, each->d_name, &status, 0) != 0) continue;
        found.push_back({std::string(name.substr(0, name.size() - ending.size())),
                         std::chrono::seconds(now - status.st_mtim.tv_sec)});
    }
    ::closedir(all);
    return found;
}

void state_folder::renew(const std::string& trace) const {
    const std::string name = trace + std::string(ending);
    if (::utimensat(fd_, name.c_str(), nullptr, 0) != 0) fail(name);
}

void state_folder::remove(const std::string& trace) const {
    const std::string name = trace + std::string(ending);
    if (::unlinkat(fd_, name.c_str(), 0) != 0) fail(name);
}

}  // namespace trace_ship
