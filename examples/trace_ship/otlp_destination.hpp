// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A server that takes OpenTelemetry's protocol, OTLP, by HTTP.
///
/// The protocol has no question about what has arrived. So a folder of this machine has it: its
/// state of a trace is replaced after each batch. A batch is sent again as a whole if this program
/// is killed before that, and a request is sent again if it has no answer. So what is in the
/// requests of one batch may arrive twice. Nothing is left out.
///
/// - The begin of a span is in no request before its end is. The state lists these begins, so that
///   the next run reads them again. If a program has overwritten one, it is reported as a loss.
/// - When a trace has ended, begins without ends are sent as log records. The state lists them as
///   well, and they are not sent again if a program joins the trace.
/// - The server may refuse a request for ever, or items of it. They are counted and reported.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <clickhouse/record_table.hpp>
#include <otlp/writer.hpp>

#include "destination.hpp"
#include "http.hpp"
#include "state_folder.hpp"

namespace trace_ship {

struct otlp_settings {
    std::string host{};                     ///< name of this machine
    std::string state{};                    ///< the folder
    std::size_t most_items = 100'000;       ///< of a batch
    std::size_t request_bytes = 1'000'000;  ///< a batch ends when a request is about so long
};

class otlp_destination final : public destination {
public:
    /// `http.url`: the server, without /v1/traces. Throws what state_folder throws.
    otlp_destination(const http_settings& http, const otlp_settings& settings);

    [[nodiscard]] std::string name() const override { return url_; }
    void prepare() override;
    delivered state_of(const clickhouse::trace_identity& trace) override;
    std::size_t add_trace(const reduce::tables& in,
                          const clickhouse::trace_identity& trace) override;
    void remove_trace(std::size_t number) override;
    void pass_over(std::size_t from, const clickhouse::row_item& one) override;
    void keep(const std::set<std::string>& traces) override;
    [[nodiscard]] bool add(std::size_t from, const clickhouse::row_item& one) override;
    [[nodiscard]] std::size_t items() const override { return items_; }
    [[nodiscard]] std::size_t bytes() const override;
    void deliver() override;
    [[nodiscard]] std::uint64_t sent_bytes() const override { return sent_bytes_; }
    [[nodiscard]] std::uint64_t refused_items() const override { return refused_items_; }

private:
    struct followed {
        const reduce::tables* in = nullptr;
        std::string trace{};
        trace_state state{};                     // with the items of the batch
        std::set<trace_state::place> awaited{};  // open begins that this run has not read yet
        std::set<trace_state::place> left{};     // of those in the state, the ones that it has
        bool changed = false;
    };

    void note(delivered& arrived, const reduce::item& what);
    void report_lost(std::size_t from, followed& of, trace_state::place begin,
                     const reduce::loss_item* loss);
    void report_departed(std::size_t from, followed& of);
    void send(const otlp::request& one);
    void take_answer(const otlp::request& one, std::string_view answer);
    void refuse(const otlp::request& one, std::uint64_t items, const std::string& why);
    void save();
    [[nodiscard]] http_client& client_of(otlp::signal of) {
        return of == otlp::signal::traces ? traces_ : logs_;
    }

    std::string url_;
    http_client traces_;
    http_client logs_;
    otlp_settings settings_;
    state_folder folder_;
    otlp::writer writer_;
    std::map<std::size_t, followed> followed_{};
    std::map<std::string, trace_state> removed_{};  // states to be saved with the batch
    std::deque<otlp::request> requests_{};          // of the batch, and not sent
    std::size_t items_ = 0;
    bool delivering_ = false;  // a part may have been sent
    std::string warned_{};
    std::uint64_t sent_bytes_ = 0;
    std::uint64_t refused_items_ = 0;
};

}  // namespace trace_ship
