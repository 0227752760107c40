// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "rust_name.hpp"

#if defined(TRACE_RING_LIBIBERTY)
// Else it declares another one.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <memory>

namespace symbols {
namespace {

/// A name may say parts of itself again, and theirs: it could be of any length.
struct bounded_text {
    static constexpr std::size_t most = std::size_t{64} << 10;
    char bytes[most];
    std::size_t size;
    std::jmp_buf too_long;
};

void append(const char* part, std::size_t size, void* to) {
    auto& made = *static_cast<bounded_text*>(to);
    // The demangler cannot be asked to stop; all of its state is on the stack.
    if (size > bounded_text::most - made.size) std::longjmp(made.too_long, 1);
    std::memcpy(made.bytes + made.size, part, size);
    made.size += size;
}

/// In a function without objects, which a longjmp would not destroy.
bool read(const char* mangled, bounded_text& into) {
    into.size = 0;
    if (setjmp(into.too_long) != 0) return false;
    return rust_demangle_callback(mangled, 0, append, &into) != 0;
}

}  // namespace

bool reads_rust_names() noexcept {
    return true;
}

std::string rust_name(const char* mangled) {
    if (std::strncmp(mangled, "_R", 2) != 0) return {};
    const auto made = std::make_unique<bounded_text>();
    return read(mangled, *made) ? std::string(made->bytes, made->size) : std::string();
}

}  // namespace symbols

#else

namespace symbols {

bool reads_rust_names() noexcept {
    return false;
}

std::string rust_name(const char*) {
    return {};
}

}  // namespace symbols
#endif
