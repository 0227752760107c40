// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The formats of CPTRAP files behind one interface.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "../options.hpp"
#include "csv.hpp"
#include "html.hpp"
#include "json.hpp"
#include "print_pages.hpp"
#include "text.hpp"

namespace trace_reduce {

class spool_format {
public:
    spool_format() = default;
    spool_format(const spool_format&) = delete;
    virtual ~spool_format() = default;

    virtual void begin(text_buffer&) {}
    /// An item of this file.
    virtual void append(text_buffer& out, std::string_view file,
                        const reduce::spool_item& item) = 0;
    virtual void end(text_buffer&) {}
};

/// Lines, in which the file is named if there are several.
template <class Writer>
class spool_lines final : public spool_format {
public:
    template <class... Arguments>
    explicit spool_lines(bool several, Arguments&&... arguments)
        : several_(several), writer_(std::forward<Arguments>(arguments)...) {}
    void append(text_buffer& out, std::string_view file, const reduce::spool_item& item) override {
        writer_.append(out, several_ ? file : std::string_view(), item);
    }

private:
    bool several_;
    Writer writer_;
};

/// A table or a page, of which one writer takes all files.
template <class Writer>
class spool_whole final : public spool_format {
public:
    template <class... Arguments>
    explicit spool_whole(Arguments&&... arguments)
        : writer_(std::forward<Arguments>(arguments)...) {}
    void begin(text_buffer& out) override { writer_.begin(out); }
    void append(text_buffer& out, std::string_view file, const reduce::spool_item& item) override {
        writer_.append(out, file, item);
    }
    void end(text_buffer& out) override {
        if constexpr (requires { writer_.end(out); }) writer_.end(out);
    }

private:
    Writer writer_;
};

/// The text, on pages, each of which names its file.
class spool_print final : public spool_format {
public:
    void append(text_buffer& out, std::string_view file, const reduce::spool_item& item) override {
        pages_.enter(file);
        text_.append(lines_, {}, item);
        pages_.append(out, lines_.view());
        lines_.clear();
    }

private:
    cptrap_text_writer text_{};
    print_pages pages_{};
    text_buffer lines_{};
};

/// The one that `wanted` names, which is one that CPTRAP files have. `several`: files.
[[nodiscard]] inline std::unique_ptr<spool_format> make_spool_format(const options& wanted,
                                                                     bool colour, bool several) {
    switch (wanted.format) {
        case output_format::json:
            return std::make_unique<spool_lines<cptrap_json_writer>>(several);
        case output_format::csv:
            return std::make_unique<spool_whole<cptrap_csv_writer>>(several);
        case output_format::html:
            return std::make_unique<spool_whole<cptrap_html_writer>>();
        case output_format::print:
            return std::make_unique<spool_print>();
        default:
            return std::make_unique<spool_lines<cptrap_text_writer>>(several, colour);
    }
}

}  // namespace trace_reduce
