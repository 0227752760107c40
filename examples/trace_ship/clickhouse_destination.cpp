// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "clickhouse_destination.hpp"

#include <lz4.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace trace_ship {

namespace {

using clickhouse::text_buffer;
using trace_ring::loss_cause;

/// The rows of a query's answer in the format TabSeparated, as texts.
class answer_rows {
public:
    explicit answer_rows(std::string_view all) : rest_(all) {}
    [[nodiscard]] bool next() {
        if (rest_.empty()) return false;
        const std::size_t end = (std::min)(rest_.find('\n'), rest_.size());
        row_ = rest_.substr(0, end);
        rest_.remove_prefix((std::min)(end + 1, rest_.size()));
        return true;
    }
    [[nodiscard]] std::string_view text() {
        const std::size_t end = (std::min)(row_.find('\t'), row_.size());
        const std::string_view cell = row_.substr(0, end);
        row_.remove_prefix((std::min)(end + 1, row_.size()));
        return cell;
    }
    template <class T>
    [[nodiscard]] T number() {
        const std::string_view cell = text();
        T value{};
        const char* const end = cell.data() + cell.size();
        const auto [last, fault] = std::from_chars(cell.data(), end, value);
        if (fault != std::errc() || last != end || cell.empty()) {
            throw refusal("the server's answer has '" + std::string(cell) +
                          "' in the place of a number");
        }
        return value;
    }

private:
    std::string_view rest_;
    std::string_view row_{};
};

/// Appends ClickHouse's frames: a checksum of 16 bytes, which is not used; the method, LZ4; the
/// size of the frame without the checksum, and of the bytes in it; the compressed bytes.
void append_compressed(std::string& out, std::string_view bytes) {
    constexpr std::size_t most = std::size_t{1} << 20;
    constexpr std::size_t head = 25;
    while (!bytes.empty()) {
        const std::string_view part = bytes.substr(0, most);
        bytes.remove_prefix(part.size());
        const std::size_t at = out.size();
        const int room = ::LZ4_compressBound(static_cast<int>(part.size()));
        out.resize(at + head + static_cast<std::size_t>(room));
        const int size = ::LZ4_compress_default(part.data(), out.data() + at + head,
                                                static_cast<int>(part.size()), room);
        if (size <= 0) throw std::runtime_error("LZ4 cannot compress a block");
        out.resize(at + head + static_cast<std::size_t>(size));
        out[at + 16] = '\x82';
        const auto put = [&](std::size_t where, std::size_t value) {
            for (unsigned i = 0; i < 4; ++i)
                out[at + where + i] = static_cast<char>(value >> (8 * i));
        };
        put(17, static_cast<std::size_t>(size) + 9);
        put(21, part.size());
    }
}

constexpr std::string_view written_causes = "('overwritten', 'overrun', 'damaged')";

loss_cause cause_of(std::string_view name) {
    for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
        const auto cause = static_cast<loss_cause>(i);
        if (to_string(cause) == name) return cause;
    }
    throw refusal("the table has a loss with the cause '" + std::string(name) + "'");
}

void pause(std::chrono::milliseconds time) {
    std::this_thread::sleep_for(time);
}

}  // namespace

clickhouse_destination::clickhouse_destination(http_settings http, clickhouse_settings settings)
    : inserts_(http),
      queries_(http),
      url_(http.url),
      settings_(std::move(settings)),
      random_(std::random_device{}()) {
    if (settings_.heap_calls) table_.enter_heap_calls();
    if (!settings_.database.empty()) {
        database_parameter_ = '&' + http_client::parameter("database", settings_.database);
    }
}

std::string clickhouse_destination::quoted_table() const {
    return clickhouse::quoted_table(settings_.table);
}

std::string clickhouse_destination::ask(const std::string& query) {
    return queries_.post("wait_end_of_query=1" + database_parameter_, query);
}

void clickhouse_destination::prepare() {
    const std::string version = ask("SELECT version()");
    const auto known = clickhouse::server_version::parse(version);
    if (!known) throw refusal(url_ + ": no ClickHouse server: its version is '" + version + "'");
    server_ = *known;
    // Only if it is missing: not every user may create tables.
    if (!ask("EXISTS TABLE " + quoted_table()).starts_with('1')) ask(create_statement());
    check_engine();
    declare_columns();
    await_end_of(settings_.instance + ':');
}

void clickhouse_destination::check_engine() {
    const std::string& table = settings_.table;
    const std::size_t dot = table.find('.');
    const std::string answer = ask(
        "SELECT engine FROM system.tables WHERE name = " +
        clickhouse::quoted_text(dot == table.npos ? table : table.substr(dot + 1)) +
        " AND database = " +
        (dot == table.npos ? "currentDatabase()" : clickhouse::quoted_text(table.substr(0, dot))));
    const std::string engine = answer.substr(0, answer.find('\n'));
    for (const char* known : {"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"}) {
        if (engine == known) return;
    }
    throw std::runtime_error(url_ + ": the table " + table + " has the engine '" + engine +
                             "': only MergeTree keeps each row as it is");
}

void clickhouse_destination::declare_columns() {
    for (int i = 0;; ++i) {
        std::map<std::string, std::string> there;
        const std::string answer = ask("DESCRIBE TABLE " + quoted_table());
        for (answer_rows rows(answer); rows.next();) {
            const std::string name(rows.text());
            there.emplace(name, rows.text());
        }
        const auto statements = table_.missing(there, quoted_table(), server_);
        try {
            for (const auto& each : statements) ask(each);
        } catch (const refusal&) {
            // Another program may have added it in the meantime, and add others now.
            constexpr int most = 100;
            if (i == most) throw;
            pause(std::chrono::milliseconds(10));
            continue;
        }
        break;
    }
    table_.set_declared();
}

bool clickhouse_destination::is_running(const std::string& query_id) {
    return !ask("SELECT 1 FROM system.processes WHERE query_id = " +
                clickhouse::quoted_text(query_id))
                .empty();
}

void clickhouse_destination::await_end_of(const std::string& query_ids) {
    constexpr int most = 200;
    const std::string query = "SELECT query_id FROM system.processes WHERE position(query_id, " +
                              clickhouse::quoted_text(query_ids) + ") = 1";
    for (int i = 0; i < most; ++i) {
        if (ask(query).empty()) return;
        pause(std::chrono::milliseconds(50));
    }
    throw refusal(url_ + ": an earlier insert is still running, " + query_ids);
}

delivered clickhouse_destination::state_of(const clickhouse::trace_identity& trace) {
    delivered made;
    const std::string from =
        " FROM " + quoted_table() + " WHERE trace = toUUID('" + trace.text() + "') AND ";
    const std::string written = "kind = 'loss' AND cause IN " + std::string(written_causes);
    const std::string places =
        ask("SELECT lane, max(position + if(kind = 'record', 1, count)), "
            "sum(if(kind = 'record', 1, count))" +
            from + "lane != 0 AND (kind = 'record' OR (" + written + ")) GROUP BY lane");
    for (answer_rows rows(places); rows.next();) {
        auto& lane = made.lanes[rows.number<std::uint32_t>()];
        lane.next = rows.number<std::uint64_t>();
        lane.positions = rows.number<std::uint64_t>();
    }
    const std::string losses =
        ask("SELECT lane, cause, sum(count)" + from + "kind = 'loss' AND (lane = 0 OR NOT (" +
            written + ")) GROUP BY lane, cause");
    for (answer_rows rows(losses); rows.next();) {
        auto& lane = made.lanes[rows.number<std::uint32_t>()];
        const loss_cause cause = cause_of(rows.text());
        lane.counted.add(cause, rows.number<std::uint64_t>());
    }
    const std::string others = ask("SELECT lane, position, if(kind = 'loss', offset, ticks)" +
                                   from + "(kind = 'clock_jump' OR cause = 'damaged')");
    for (answer_rows rows(others); rows.next();) {
        const auto lane = rows.number<std::uint32_t>();
        const auto position = rows.number<std::uint64_t>();
        made.places.emplace(lane, position, rows.number<std::uint64_t>());
    }
    return made;
}

std::size_t clickhouse_destination::add_trace(const reduce::tables& in,
                                              const clickhouse::trace_identity& trace) {
    const std::size_t number = table_.add_trace(in, trace);
    if (number >= identities_.size()) identities_.resize(number + 1);
    identities_[number] = trace;
    return number;
}

void clickhouse_destination::remove_trace(std::size_t number) {
    table_.remove_trace(number);
}

std::size_t clickhouse_destination::bytes() const {
    return sealed_ ? sealed_->body.size() : table_.bytes();
}

bool clickhouse_destination::add(std::size_t from, const clickhouse::row_item& one) {
    if (sealed_ || items_ >= settings_.most_rows || table_.bytes() >= settings_.most_bytes) {
        return false;
    }
    const std::int64_t day = table_.day_of(from, *one.what);
    if (day_ && *day_ != day) return false;
    if (items_ == 0) {
        do {
            batch_number_ = random_();
        } while (batch_number_ == 0);
        const auto place = clickhouse::place_of(*one.what);
        first_row_ = "trace = toUUID('" + identities_[from].text() +
                     "') AND lane = " + std::to_string(place.lane) +
                     " AND position = " + std::to_string(place.position) +
                     " AND batch = " + std::to_string(batch_number_);
    }
    day_ = day;
    table_.add(from, one, batch_number_);
    ++items_;
    return true;
}

void clickhouse_destination::seal() {
    if (table_.has_undeclared()) declare_columns();
    text_buffer block;
    table_.write_block(block, false);
    sealed_.emplace();
    sealed_->first_row = first_row_;
    append_compressed(sealed_->body, block.view());
}

void clickhouse_destination::deliver() {
    if (items_ == 0) return;
    if (!sealed_) seal();
    send(*sealed_);
    sent_bytes_ += sealed_->body.size();
    sealed_.reset();
    day_.reset();
    items_ = 0;
}

void clickhouse_destination::send(sent_batch& batch) {
    if (batch.uncertain) {
        await_end_of(settings_.instance + ':');
        const bool arrived =
            !ask("SELECT 1 FROM " + quoted_table() + " WHERE " + batch.first_row + " LIMIT 1")
                 .empty();
        if (arrived) return;
        batch.uncertain = false;
    }
    const std::string query_id = settings_.instance + ':' + std::to_string(random_()) + ':' +
                                 std::to_string(++query_number_);
    const std::string query = "INSERT INTO " + quoted_table() + " FORMAT Native\n";
    // The server appends a line end to this text, and takes the text behind the query's own line
    // end for the beginning of the data. So that is a block without rows, of one column, whose type
    // ends with the line end: blanks around a type do not count.
    constexpr std::string_view no_rows("\x01\x00\x04kind\x07String", 14);
    const std::string parameters =
        http_client::parameter("query", query + std::string(no_rows)) + '&' +
        http_client::parameter("query_id", query_id) +
        "&max_query_size=" + std::to_string(query.size()) +
        "&decompress=1&http_native_compression_disable_checksumming_on_decompress=1" +
        database_parameter_;
    http_client::extra more;
    more.headers.emplace_back("Content-Type: application/octet-stream");
    more.before_last_byte = [&] {
        constexpr int most = 2000;
        for (int i = 0; !is_running(query_id); ++i) {
            if (i == most) {
                throw refusal(url_ + ": the server does not list the insert " + query_id +
                              " in system.processes: it has to be one server, and no balancer of "
                              "several, and its user may not be hidden from itself");
            }
            pause(std::chrono::milliseconds(5));
        }
        batch.uncertain = true;
    };
    inserts_.post(parameters, batch.body, more);
}

}  // namespace trace_ship
