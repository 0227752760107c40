// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// A Boost.Asio server of coroutines. A request is a span, which is suspended with its coroutine
/// and resumed by any thread. A flow connects the client's record with the server's span.
///   asio_server FILE         then: trace-reduce FILE --format html --output server.html

#include <atomic>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>

#include <boost/asio.hpp>
#include <trace_ring/trace_ring.hpp>

namespace {

namespace asio = boost::asio;
using asio::awaitable, asio::use_awaitable, asio::ip::tcp;
using trace_ring::field, trace_ring::flow;

struct sent : trace_ring::event<"request.sent", field<"request", flow>> {};
struct handled : trace_ring::span<"request.handled", field<"request", flow>,
                                  trace_ring::results<field<"answer", unsigned>>> {};

constexpr unsigned clients = 8, requests = 25;
std::atomic<unsigned> answered = 0;

// The span lives in the coroutine's frame. While the coroutine waits, its thread serves others.
awaitable<void> serve(trace_ring::recorder& trace, tcp::socket peer) {
    for (unsigned i = 0; i < requests; ++i) {
        unsigned number = 0;
        co_await asio::async_read(peer, asio::buffer(&number, sizeof number), use_awaitable);
        auto span = trace.scope<handled>(flow{number});
        asio::steady_timer work(peer.get_executor(), std::chrono::microseconds(100));
        co_await work.async_wait(use_awaitable);
        number *= number;
        co_await asio::async_write(peer, asio::buffer(&number, sizeof number), use_awaitable);
        span.end(number);
    }
}

awaitable<void> listen(trace_ring::recorder& trace, tcp::acceptor& acceptor) {
    for (unsigned i = 0; i < clients; ++i) {
        auto peer = co_await acceptor.async_accept(use_awaitable);
        co_spawn(acceptor.get_executor(), serve(trace, std::move(peer)), asio::detached);
    }
}

awaitable<void> ask(trace_ring::recorder& trace, tcp::endpoint server, unsigned client) {
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(server, use_awaitable);
    for (unsigned i = 0; i < requests; ++i) {
        unsigned number = client * requests + i + 1;
        trace.record<sent>(flow{number});
        co_await asio::async_write(socket, asio::buffer(&number, sizeof number), use_awaitable);
        co_await asio::async_read(socket, asio::buffer(&number, sizeof number), use_awaitable);
        ++answered;
    }
}

}  // namespace

int main(int count, char** arguments) try {
    trace_ring::recorder trace{{.file = count > 1 ? arguments[1] : "server.trace",
                                .exists = trace_ring::if_exists::replace}};
    asio::io_context context;
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    co_spawn(context, listen(trace, acceptor), asio::detached);
    for (unsigned client = 0; client < clients; ++client)
        co_spawn(context, ask(trace, acceptor.local_endpoint(), client), asio::detached);
    std::thread second([&] { context.run(); });
    context.run();
    second.join();
    return answered == clients * requests ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "asio_server: %s\n", error.what());
    return 1;
}
