// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A table of a ClickHouse server, by its HTTP interface. Each record arrives once:
///
/// - A batch is one insert of one block into one partition, which ClickHouse writes whole or not at
///   all.
/// - If the answer to an insert is missing, its rows are looked for by the batch's number before it
///   is sent again.
/// - An insert that was sent and not answered may still be waiting in the server. So its last byte
///   is held back until the server lists the insert among the queries that it executes. Without
///   that byte the block is cut short, and nothing is inserted. With it, the insert is in the list
///   until it has ended. So when no earlier insert is in the list, none can arrive any more, also
///   after a kill -9 of this program: only then the server is asked what it has.
///
/// Source: ClickHouse's HTTPHandler and executeQuery read at most `max_query_size` bytes before
/// the query is entered in system.processes, which here end within the text of the query.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <clickhouse/record_table.hpp>

#include "destination.hpp"
#include "http.hpp"

namespace trace_ship {

struct clickhouse_settings {
    std::string database{};  ///< empty: the user's
    std::string table{};
    std::string instance{};   ///< tells apart the programs that ship to the same server
    bool heap_calls = false;  ///< makes the columns of all calls in heap traces
    std::size_t most_rows = 100'000;
    std::size_t most_bytes = std::size_t{32} << 20;
};

class clickhouse_destination final : public destination {
public:
    clickhouse_destination(http_settings http, clickhouse_settings settings);

    [[nodiscard]] std::string name() const override { return url_; }
    void prepare() override;
    delivered state_of(const clickhouse::trace_identity& trace) override;
    std::size_t add_trace(const reduce::tables& in,
                          const clickhouse::trace_identity& trace) override;
    void remove_trace(std::size_t number) override;
    [[nodiscard]] bool add(std::size_t from, const clickhouse::row_item& one) override;
    [[nodiscard]] std::size_t items() const override { return items_; }
    [[nodiscard]] std::size_t bytes() const override;
    void deliver() override;
    [[nodiscard]] std::uint64_t sent_bytes() const override { return sent_bytes_; }

    /// The statement that creates the table, with the columns that are known.
    [[nodiscard]] std::string create_statement() const {
        return table_.create_statement(quoted_table(), server_);
    }

private:
    /// A batch in the form in which it is sent.
    struct sent_batch {
        std::string columns{};
        std::string body{};
        std::string first_row{};  ///< the condition that finds its first row
        bool uncertain = false;   ///< whether it has arrived is not known
    };

    [[nodiscard]] std::string quoted_table() const;
    std::string ask(const std::string& query);
    void check_engine();
    void declare_columns();
    void await_end_of(const std::string& query_ids);
    [[nodiscard]] bool is_running(const std::string& query_id);
    void seal();
    void send(sent_batch& batch);

    http_client inserts_;
    http_client queries_;
    std::string url_;
    clickhouse_settings settings_;
    std::string database_parameter_;
    clickhouse::server_version server_{};
    clickhouse::record_table table_{};
    std::vector<clickhouse::trace_identity> identities_{};
    std::optional<std::int64_t> day_{};  // of the rows in the table
    std::string first_row_{};
    std::uint64_t batch_number_ = 0;
    std::size_t items_ = 0;
    std::optional<sent_batch> sealed_{};
    std::mt19937_64 random_;
    std::uint64_t query_number_ = 0;
    std::uint64_t sent_bytes_ = 0;
};

}  // namespace trace_ship
