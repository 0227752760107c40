// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A growing array of trivially copyable values, for code that every recording program compiles.
/// std::vector, with the headers that it needs, takes as long to compile as half of the recorder.

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

namespace trace_ring::inline v1 {

namespace impl {

/// Room for `bytes`, with the first `used` of `old` in it; `old` is given back. Throws bad_alloc.
[[nodiscard, gnu::noinline, gnu::cold]] inline void* moved(void* old, std::size_t used,
                                                           std::size_t bytes) {
    void* const room = ::operator new(bytes);
    if (used != 0) std::memcpy(room, old, used);
    if (old != nullptr) ::operator delete(old);  // a program that counts its calls sees none more
    return room;
}

}  // namespace impl

/// Moved, not copied. What makes it longer throws std::bad_alloc.
template <class T>
class list_of {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
    list_of() noexcept = default;
    /// `size` values as `T{}` makes them.
    explicit list_of(std::size_t size) { resize(size); }
    list_of(const list_of&) = delete;
    list_of& operator=(const list_of&) = delete;
    list_of(list_of&& other) noexcept
        : first_(other.first_), size_(other.size_), room_(other.room_) {
        other.first_ = nullptr;
        other.size_ = other.room_ = 0;
    }
    list_of& operator=(list_of&& other) noexcept {
        list_of old(static_cast<list_of&&>(*this));
        ::new (static_cast<void*>(this)) list_of(static_cast<list_of&&>(other));
        return *this;
    }
    ~list_of() {
        if (first_ != nullptr) ::operator delete(first_);
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] T* data() const noexcept { return first_; }
    [[nodiscard]] T* begin() const noexcept { return first_; }
    [[nodiscard]] T* end() const noexcept { return first_ + size_; }
    [[nodiscard]] T& operator[](std::size_t i) const noexcept { return first_[i]; }

    void clear() noexcept { size_ = 0; }
    /// To no more values than there are.
    void shorten(std::size_t size) noexcept { size_ = size; }
    void resize(std::size_t size) {
        reserve(size);
        for (std::size_t i = size_; i < size; ++i) ::new (static_cast<void*>(first_ + i)) T{};
        size_ = size;
    }
    void push_back(const T& value) { insert(size_, value); }
    /// Before the value at `at`, or at the end. Linear in what follows.
    void insert(std::size_t at, T value) {
        if (size_ == room_) reserve(size_ * 2 + 4);
        std::memmove(static_cast<void*>(first_ + at + 1), first_ + at, (size_ - at) * sizeof(T));
        ::new (static_cast<void*>(first_ + at)) T(value);
        ++size_;
    }

private:
    void reserve(std::size_t room) {
        if (room <= room_) return;
        constexpr std::size_t each =
            sizeof(T);  // NOLINT(bugprone-sizeof-expression): pointers, too
        first_ = static_cast<T*>(impl::moved(first_, size_ * each, room * each));
        room_ = room;
    }

    T* first_ = nullptr;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

}  // namespace trace_ring::inline v1
