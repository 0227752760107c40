// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Names as Rust's compiler mangles them since 2025 (v0, RFC 2603). Its older ones are like those
/// of C++.
/// @code
///   symbols::rust_name("_RNvMNtCskK7mfDs1mzF_1m4shopINtB2_5OrderyE6handleB4_");
///   // "<m::shop::Order<u64>>::handle"
/// @endcode

#include <string>

namespace symbols {

/// Whether this was built with libiberty, which reads them. Else no name is read.
[[nodiscard]] bool reads_rust_names() noexcept;

/// Such a name as Rust shows it; empty: it is none, or would be longer than 64 KiB. Throws
/// std::bad_alloc only.
[[nodiscard]] std::string rust_name(const char* mangled);

}  // namespace symbols
