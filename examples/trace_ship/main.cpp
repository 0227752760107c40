// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Ships the traces of a machine to a server that collects those of many.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <clickhouse/record_table.hpp>
#include <trace_ring/reduce/statistics.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../shown.hpp"
#include "clickhouse_destination.hpp"
#include "options.hpp"
#include "otlp_destination.hpp"
#include "shipping.hpp"

namespace trace_ship {

namespace {

volatile std::sig_atomic_t interrupts = 0;

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) {
        interrupts = interrupts == 0 ? 1 : 2;
    };  // no SA_RESTART: a sleep ends
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

/// What would be shipped.
int show(const options& wanted) {
    clickhouse::record_table table;
    int status = 0;
    for (const auto& each : wanted.shipping.folders) {
        trace_folder folder(each, wanted.shipping.glob);
        for (const auto& file : folder.files()) {
            try {
                const auto trace = reduce::trace_file::open(file.path);
                const auto sum = trace.statistics();
                for (const auto& type : trace.event_types()) table.enter(type);
                std::printf("%s: %s, %llu records, %llu lost, %zu events, %s\n",
                            shown(file.path).c_str(),
                            clickhouse::identity_of(trace.about(), "").text().c_str(),
                            static_cast<unsigned long long>(sum.records),
                            static_cast<unsigned long long>(sum.lost.total()),
                            trace.event_types().size(), trace.live() ? "recording" : "ended");
            } catch (const std::exception& fault) {
                complain("trace-ship", std::string(fault.what()) + ": not shipped");
                status = 1;
            }
        }
    }
    if (wanted.to_otlp) return std::fflush(stdout) == 0 ? status : 1;
    constexpr clickhouse::server_version current{25, 3};
    std::printf(
        "\n%s;\n",
        table.create_statement(clickhouse::quoted_name(wanted.clickhouse.table), current).c_str());
    return std::fflush(stdout) == 0 ? status : 1;
}

int run(options& wanted) {
    try {
        if (wanted.dry_run) return show(wanted);
        wanted.http.stop = &interrupts;
        if (wanted.shipping.once) wanted.http.silent_seconds = 30;
        std::unique_ptr<destination> to;
        if (wanted.to_otlp) {
            to = std::make_unique<otlp_destination>(wanted.http, wanted.otlp);
        } else {
            to = std::make_unique<clickhouse_destination>(wanted.http, wanted.clickhouse);
        }
        shipping all(wanted.shipping, *to, interrupts);
        return all.run() ? 0 : 1;
    } catch (const std::exception& error) {
        complain("trace-ship", error.what());
        return 1;
    }
}

}  // namespace
}  // namespace trace_ship

int main(int argc, char** argv) {
    trace_ship::options wanted;
    int status = 0;
    if (!trace_ship::parse(argc, argv, wanted, status)) return status;
    trace_ship::catch_signals();
    return trace_ship::run(wanted);
}
