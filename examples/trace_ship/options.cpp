// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "options.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <records/fingerprint.hpp>

namespace trace_ship {

namespace {

constexpr const char* footer =
    R"(URL is http://HOST:PORT/ or https:// of a ClickHouse server, or otlp+http://HOST:PORT/ or
otlp+https:// of a server that takes OpenTelemetry's protocol, which needs --state.

Credentials are taken from the environment (TRACE_SHIP_USER, TRACE_SHIP_PASSWORD) or a file that
only its owner can read, with the lines 'user=NAME' and 'password=TEXT'. With otlp also a token:
TRACE_SHIP_TOKEN, or the line 'token=TEXT'.

The first Ctrl-C or SIGTERM delivers what was read and ends; the second ends at once.

Exit status: 0; 1 if something that was read is not delivered, or was refused, or for any other
error.)";

constexpr std::string_view otlp_scheme = "otlp+";

std::string wrong_url(const std::string& whole) {
    const bool otlp = whole.starts_with(otlp_scheme);
    const std::string url = whole.substr(otlp ? otlp_scheme.size() : 0);
    const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
    if (scheme == 0) {
        return "'" + whole +
               "' is no http://HOST:PORT/ or https://HOST:PORT/, with or without otlp+ before it";
    }
    const std::size_t path = (std::min)(url.find('/', scheme), url.size());
    if (url.find('@') < path) {
        return "credentials in a URL are seen by all users of the machine: use --credentials or "
               "the "
               "environment";
    }
    if (path == scheme) return "'" + url + "' names no host";
    if (url.find_first_of("?# ", scheme) != url.npos) {
        return "'" + whole + "' has more than a host and a path" +
               (otlp ? "" : ": see --database and --table");
    }
    return {};
}

struct credentials {
    std::string user{};
    std::string password{};
    std::string token{};
};

credentials read_credentials(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        throw CLI::ValidationError("--credentials",
                                   path + ": " + std::generic_category().message(errno));
    }
    if ((status.st_mode & 077) != 0) {
        throw CLI::ValidationError("--credentials",
                                   path + ": others can read it: chmod 600, and another password");
    }
    std::ifstream in(path);
    credentials found;
    unsigned number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        if (line.starts_with("user=")) {
            found.user = line.substr(5);
        } else if (line.starts_with("password=")) {
            found.password = line.substr(9);
        } else if (line.starts_with("token=")) {
            found.token = line.substr(6);
        } else {
            throw CLI::ValidationError("--credentials",
                                       path + ": line " + std::to_string(number) +
                                           " is none of user=NAME, password=TEXT and token=TEXT");
        }
    }
    if (in.bad() || number == 0) {
        throw CLI::ValidationError("--credentials", path + ": empty, or cannot be read");
    }
    return found;
}

std::string text_of(const char* value) {
    return value == nullptr ? "" : value;
}

void check_credentials(const credentials& who, bool otlp) {
    for (const auto* each : {&who.user, &who.password, &who.token}) {
        if (each->find_first_of("\r\n") != each->npos) {
            throw CLI::ValidationError("--credentials", "a line end in a name, password or token");
        }
    }
    if (!who.token.empty() && !otlp) {
        throw CLI::ValidationError("--credentials", "a token is only for --to otlp+...");
    }
    if (!who.token.empty() && !(who.user.empty() && who.password.empty())) {
        throw CLI::ValidationError("--credentials", "both a token, and a user or password");
    }
    if (otlp && who.user.empty() != who.password.empty()) {
        throw CLI::ValidationError("--credentials", "only one of a user and a password");
    }
    if (otlp && who.user.find(':') != who.user.npos) {
        throw CLI::ValidationError("--credentials", "a user's name with ':'");
    }
}

/// The same in each run with these folders.
std::string fingerprint_of(std::vector<std::string> folders) {
    for (auto& each : folders) {
        char real[PATH_MAX];
        if (::realpath(each.c_str(), real) != nullptr) each = real;
    }
    std::sort(folders.begin(), folders.end());
    std::string all;
    for (const auto& each : folders) all += each + '\n';
    return std::to_string(records::fingerprint(all));
}

}  // namespace

bool parse(int argc, char** argv, options& into, int& status) {
    CLI::App app(
        "Follows all traces in folders (of programs that run, end, are killed or started again) "
        "and\n"
        "inserts each record once into a ClickHouse table, or sends it to an OpenTelemetry "
        "collector;\n"
        "missing records are inserted or sent as losses.",
        "trace-ship");
    app.set_version_flag("--version", "trace-ship " TRACE_RING_VERSION);
    app.add_option("DIR", into.shipping.folders, "Folders with trace files; not their subfolders")
        ->required()
        ->check(CLI::ExistingDirectory);
    auto* to = app.add_option("--to", into.http.url, "The server");
    to->option_text("URL")->check(wrong_url);
    app.add_option("--state", into.otlp.state,
                   "With --to otlp+...: the folder that keeps what was delivered; created if it is "
                   "missing")
        ->option_text("FOLDER");
    app.add_option("--database", into.clickhouse.database,
                   "The database (the user's default database otherwise)")
        ->option_text("NAME");
    app.add_option("--table", into.clickhouse.table, "The table, which is created if it is missing")
        ->option_text("[DATABASE.]NAME")
        ->default_val("trace_records");
    auto* host = app.add_option("--host", into.shipping.host,
                                "The name of this machine in the records (what `uname -n` prints "
                                "otherwise)");
    host->option_text("NAME");
    app.add_option("--match", into.shipping.glob, "Only files whose names match")
        ->option_text("GLOB")
        ->default_val("*");
    std::string credentials_file;
    app.add_option("--credentials", credentials_file,
                   "The file with the user and the password, or the token")
        ->option_text("FILE");
    app.add_option("--ca", into.http.ca_file,
                   "With https: trust the certificates that are signed by those in this file")
        ->option_text("FILE")
        ->check(CLI::ExistingFile);
    double seconds = 1;
    app.add_option("--interval", seconds, "How long a record may wait for others of its batch")
        ->option_text("SECONDS")
        ->default_val("1")
        ->check([](const std::string& text) {
            double value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && value >= 0.01 &&
                              value <= 3600;  // NaN is neither
            return good ? std::string() : "'" + text + "' is no number from 0.01 to 3600";
        });
    app.add_option("--batch", into.clickhouse.most_rows, "The most rows of an insert")
        ->option_text("ROWS")
        ->default_val("100000")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}));
    app.add_option("--max-open", into.shipping.most_open, "The most traces to follow at a time")
        ->option_text("N")
        ->default_val("1000")
        ->check(CLI::Range(std::size_t{1}, std::size_t{100'000}));
    app.add_option("--metrics", into.shipping.metrics_file,
                   "Write figures about this program to this file every 5 seconds, as Prometheus's "
                   "node_exporter collects them")
        ->option_text("FILE");
    auto* symbols = app.add_flag(
        "--symbols", into.shipping.symbols,
        "Fill the column stack_text: the functions and lines of the call stacks in heap traces, by "
        "the traces' records 'module', and the files that these name, if they are still the same. "
        "Also make the columns of all events of heap traces");
    app.add_flag("--once", into.shipping.once,
                 "End when all that is there was delivered, instead of following; give up if the "
                 "server is away for 30 seconds");
    app.add_flag("--dry-run", into.dry_run,
                 "Show the traces and the statement that creates the table; connect to no server");
    app.footer(footer);
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string("trace-ship: ") + error.what() + " (see --help)\n";
    });
    try {
        app.parse(argc, argv);
        if (*symbols && !clickhouse::stack_symbols::can_name()) {
            throw CLI::ValidationError("--symbols", "this program was built without elfutils");
        }
        if (!*to && !into.dry_run) throw CLI::ValidationError("--to", "is required: the server");
        const auto& table = into.clickhouse.table;
        if (table.empty() || table.front() == '.' || table.back() == '.') {
            throw CLI::ValidationError("--table", "'" + table + "' is no [DATABASE.]NAME");
        }
        if (table.find('.') != table.npos && !into.clickhouse.database.empty()) {
            throw CLI::ValidationError("--database", "--table names a database as well");
        }
        if (*host && into.shipping.host.empty()) {
            throw CLI::ValidationError("--host", "an empty name");
        }
        if (*to && !into.http.url.ends_with('/')) into.http.url += '/';
        into.to_otlp = into.http.url.starts_with(otlp_scheme);
        if (into.to_otlp) {
            into.http.url.erase(0, otlp_scheme.size());
            for (const char* const each : {"--database", "--table", "--batch", "--symbols"}) {
                if (app.count(each) == 0) continue;
                throw CLI::ValidationError(each, "is only for ClickHouse, not for --to otlp+...");
            }
            if (into.otlp.state.empty() && !into.dry_run) {
                throw CLI::ValidationError("--state", "is required for --to otlp+...: a folder");
            }
        } else if (app.count("--state") != 0) {
            throw CLI::ValidationError("--state", "is only for --to otlp+...");
        }
        into.shipping.interval =
            std::chrono::milliseconds(static_cast<std::int64_t>(std::llround(seconds * 1000)));
        into.clickhouse.heap_calls = into.shipping.symbols;
        into.shipping.show_progress = ::isatty(STDERR_FILENO) != 0;
        if (into.shipping.host.empty()) {
            std::array<char, HOST_NAME_MAX + 1> name{};
            if (::gethostname(name.data(), name.size() - 1) == 0) into.shipping.host = name.data();
        }
        if (into.shipping.host.empty()) {
            throw CLI::ValidationError("--host", "this machine has no name: say one");
        }
        into.clickhouse.instance =
            "trace-ship:" + into.shipping.host + ':' + fingerprint_of(into.shipping.folders);
        into.otlp.host = into.shipping.host;
        credentials who{text_of(std::getenv("TRACE_SHIP_USER")),
                        text_of(std::getenv("TRACE_SHIP_PASSWORD")),
                        text_of(std::getenv("TRACE_SHIP_TOKEN"))};
        if (!credentials_file.empty()) who = read_credentials(credentials_file);
        check_credentials(who, into.to_otlp);
        if (into.to_otlp) {
            into.http.user = who.user;
            into.http.password = who.password;
            if (!who.token.empty()) {
                into.http.headers.push_back("Authorization: Bearer " + who.token);
            }
            return true;
        }
        if (!who.user.empty()) into.http.headers.push_back("X-ClickHouse-User: " + who.user);
        if (!who.password.empty()) into.http.headers.push_back("X-ClickHouse-Key: " + who.password);
        return true;
    } catch (const CLI::ParseError& error) {
        status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : 1;
        return false;
    }
}

}  // namespace trace_ship
