// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The formats that trace-reduce writes items in, behind one interface. options.hpp
/// lists the options that each supports. A new format needs a line there, and one in
/// make_format.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <otlp/writer.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "../shown.hpp"
#include "exporting/chrome.hpp"
#include "exporting/clickhouse.hpp"
#include "exporting/csv.hpp"
#include "exporting/ctf.hpp"
#include "exporting/perfetto.hpp"
#include "exporting/viewer/roles.hpp"
#include "folder.hpp"
#include "html/writer.hpp"
#include "options.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

class format {
public:
    format() = default;
    format(const format&) = delete;
    virtual ~format() = default;

    /// Another file that comes into the same output; before `begin`, unless the format takes one in
    /// later (options.hpp). Returns its number. `in` must outlive this, or what is appended of it.
    /// `places`: the names of places in its code, where the format shows them; null: none.
    virtual std::size_t add(const reduce::tables& in, std::string_view name,
                            exporter::address_names* places) = 0;
    /// Writes the text before the first item.
    virtual void begin(exporter::text_buffer& out) = 0;
    /// `took`: of the span that the record ends; null: not known.
    virtual void append(exporter::text_buffer& out, std::size_t from, const reduce::item& what,
                        const exporter::span_length* took) = 0;
    /// Makes it whole.
    virtual void end(exporter::text_buffer& out) = 0;
    /// Gives it its name, where the output does not.
    virtual void commit() {}
};

/// Formats of lines. Each file has a separate writer.
template <class Writer>
class line_format : public format {
public:
    void begin(exporter::text_buffer&) final {}
    void append(exporter::text_buffer& out, std::size_t from, const reduce::item& what,
                const exporter::span_length* took) final {
        writers_[from].append(out, what, took);
    }
    void end(exporter::text_buffer&) final {}

protected:
    template <class... Arguments>
    std::size_t enter(Arguments&&... arguments) {
        writers_.emplace_back(std::forward<Arguments>(arguments)...);
        return writers_.size() - 1;
    }

private:
    std::vector<Writer> writers_;
};

class text_format final : public line_format<exporter::text_writer> {
public:
    text_format(const options& wanted, bool colour, bool several)
        : time_(wanted.time), colour_(colour), several_(several) {}
    std::size_t add(const reduce::tables& in, std::string_view name,
                    exporter::address_names* places) override {
        std::size_t processes = 0;
        for (const auto& process : in.processes()) {
            if (process.state != trace_ring::layout::presence::free) ++processes;
        }
        return enter(in.time(), exporter::text_options{.time = time_,
                                                       .colour = colour_,
                                                       .processes = processes > 1,
                                                       .entries = !in.pids_differ(),
                                                       .file = std::string(several_ ? name : ""),
                                                       .names = places});
    }

private:
    exporter::time_format time_;
    bool colour_;
    bool several_;
};

class json_format final : public line_format<exporter::json_writer> {
public:
    explicit json_format(bool several) : several_(several) {}
    std::size_t add(const reduce::tables& in, std::string_view name,
                    exporter::address_names*) override {
        return enter(in.time(), several_ ? name : std::string_view());
    }

private:
    bool several_;
};

/// Formats of which one writer takes all files.
template <class Writer>
class one_format final : public format {
public:
    template <class... Arguments>
    explicit one_format(Arguments&&... arguments)
        : writer_(std::forward<Arguments>(arguments)...) {}
    std::size_t add(const reduce::tables& in, std::string_view name,
                    exporter::address_names*) override {
        return writer_.add(in, name);
    }
    void begin(exporter::text_buffer& out) override { writer_.begin(out); }
    void append(exporter::text_buffer& out, std::size_t from, const reduce::item& what,
                [[maybe_unused]] const exporter::span_length* took) override {
        if constexpr (requires { writer_.append(out, from, what, took); }) {
            writer_.append(out, from, what, took);
        } else {  // it draws spans
            writer_.append(out, from, what);
        }
    }
    void end(exporter::text_buffer& out) override { writer_.end(out); }

private:
    Writer writer_;
};

/// A folder of files: nothing goes to the output.
class ctf_format final : public format {
public:
    explicit ctf_format(const std::string& path)
        : folder_(path), writer_([this](std::string_view file, std::string_view bytes) {
              folder_.append(file, bytes);
          }) {}
    std::size_t add(const reduce::tables& in, std::string_view name,
                    exporter::address_names*) override {
        return writer_.add(in, name);
    }
    void begin(exporter::text_buffer&) override { writer_.begin(); }
    void append(exporter::text_buffer&, std::size_t from, const reduce::item& what,
                const exporter::span_length*) override {
        writer_.append(from, what);
    }
    void end(exporter::text_buffer&) override { writer_.end(); }
    void commit() override { folder_.commit(); }

private:
    folder folder_;
    exporting::ctf_writer writer_;
};

/// A folder with the bodies of requests. Those of one signal, one behind the other, are one body.
class otlp_format final : public format {
public:
    otlp_format(const options& wanted, exporting::field_roles roles)
        : folder_(wanted.output),
          writer_({.host = wanted.host,
                   .exported_ns = now(),
                   .is_flow = [roles = std::move(roles)](const auto& event, const auto& field) {
                       return roles.is_flow(event, field);
                   }}) {}
    std::size_t add(const reduce::tables& in, std::string_view, exporter::address_names*) override {
        files_ = writer_.add(in) + 1;
        return files_ - 1;
    }
    void begin(exporter::text_buffer&) override {
        folder_.append("traces.otlp", "");  // both are there, even if they are empty
        folder_.append("logs.otlp", "");
    }
    void append(exporter::text_buffer&, std::size_t from, const reduce::item& what,
                const exporter::span_length*) override {
        writer_.append(from, what);
        write();
    }
    void end(exporter::text_buffer&) override {
        for (std::size_t from = 0; from < files_; ++from) writer_.end(from);
        writer_.flush();
        write();
    }
    void commit() override {
        folder_.commit();
        const std::string others = writer_.counts_in_words();
        if (others.empty()) return;
        complain("trace-reduce", "some ends of spans are log records: " + others);
    }

private:
    [[nodiscard]] static std::uint64_t now() {
        const auto since = std::chrono::system_clock::now().time_since_epoch();
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
    }
    void write() {
        for (const auto& each : writer_.take()) {
            folder_.append(each.of == otlp::signal::traces ? "traces.otlp" : "logs.otlp",
                           each.body);
        }
    }

    folder folder_;
    otlp::writer writer_;
    std::size_t files_ = 0;
};

/// The one that is wanted. `colour`: of text. `several`: traces, which are then named.
[[nodiscard]] inline std::unique_ptr<format> make_format(const options& wanted, bool colour,
                                                         bool several) {
    const exporting::field_roles roles{wanted.flows, wanted.counters};
    switch (wanted.format) {
        case output_format::text:
            return std::make_unique<text_format>(wanted, colour, several);
        case output_format::json:
            return std::make_unique<json_format>(several);
        case output_format::csv:
            return std::make_unique<one_format<exporting::csv_writer>>(
                exporting::csv_options{several, wanted.events});
        case output_format::chrome:
            return std::make_unique<one_format<exporting::chrome_writer>>(roles);
        case output_format::perfetto:
            return std::make_unique<one_format<exporting::perfetto_writer>>(roles);
        case output_format::ctf:
            return std::make_unique<ctf_format>(wanted.output);
        case output_format::otlp:
            return std::make_unique<otlp_format>(wanted, roles);
        case output_format::html:
            return std::make_unique<one_format<html_writer>>(roles);
        case output_format::clickhouse:
            return std::make_unique<one_format<exporting::clickhouse_writer>>(
                exporting::clickhouse_options{wanted.host, "", {}, wanted.events, wanted.symbols});
        case output_format::clickhouse_table:
            return std::make_unique<one_format<exporting::clickhouse_table_writer>>(
                exporting::clickhouse_options{"", clickhouse::quoted_table(wanted.table),
                                              *clickhouse::server_version::parse(wanted.server),
                                              wanted.events, false});
        case output_format::print:
            throw std::runtime_error("--format print is for CPTRAP files");
    }
    throw std::logic_error("a format without a writer");
}

}  // namespace trace_reduce
