// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Collects spans, or log records, until they fill a request.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>

#include "../protobuf.hpp"
#include "numbers.hpp"

namespace otlp {

/// What a request has: the path of the server that takes it depends on this.
enum class signal { traces, logs };

/// The body of a request: a message of type ExportTraceServiceRequest or ExportLogsServiceRequest,
/// which have the same fields as TracesData and LogsData. Bodies of one signal that are written one
/// behind the other are one such message.
struct request {
    signal of = signal::traces;
    std::string body{};
    std::uint64_t items = 0;  ///< spans, or log records
};

class request_builder {
public:
    /// `scope`: a message of type InstrumentationScope. `resources`: messages of type Resource;
    /// there may be more of them later. A request ends with the item by which its items have
    /// `enough` bytes.
    request_builder(signal of, std::string scope, const std::deque<std::string>& resources,
                    std::size_t enough)
        : of_(of), scope_(std::move(scope)), resources_(resources), enough_(enough) {}
    request_builder(const request_builder&) = delete;

    /// Adds an item of a resource, given by its number; `body(text_buffer&)` writes the item's
    /// message. The order of a resource's items is kept.
    template <class Body>
    void add(std::size_t resource, Body&& body) {
        text_buffer& to = items_of(resource);
        const std::size_t before = to.size();
        proto::message(to, numbers::data::items, [&] { body(to); });
        bytes_ += to.size() - before;
        ++items_;
        if (bytes_ >= enough_) finish();
    }
    /// Ends the request, so that `take` returns all items.
    void finish() {
        if (items_ == 0) return;
        out_.clear();
        for (const auto& each : groups_) {
            proto::message(out_, numbers::data::resources, [&] {
                proto::bytes(out_, numbers::data::resource, resources_[each.resource]);
                proto::message(out_, numbers::data::scopes, [&] {
                    proto::bytes(out_, numbers::data::scope, scope_);
                    out_ += each.items.view();
                });
            });
        }
        done_.push_back({of_, std::string(out_.view()), items_});
        spare_ = std::move(groups_.front().items);
        spare_.clear();
        groups_.clear();
        for (auto& place : place_of_) place = none;
        bytes_ = 0;
        items_ = 0;
    }
    /// Bytes of the items in the request that was begun.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    /// The requests that have ended, once.
    [[nodiscard]] std::vector<request> take() { return std::exchange(done_, {}); }

private:
    using proto = protobuf::encoding;
    using text_buffer = trace_ring::exporter::text_buffer;
    static constexpr std::size_t none = ~std::size_t{0};
    struct group {
        std::size_t resource = 0;
        text_buffer items{};
    };

    [[nodiscard]] text_buffer& items_of(std::size_t resource) {
        if (resource >= place_of_.size()) place_of_.resize(resource + 1, none);
        std::size_t& place = place_of_[resource];
        if (place == none) {
            place = groups_.size();
            groups_.push_back({resource, std::exchange(spare_, {})});
        }
        return groups_[place].items;
    }

    signal of_;
    std::string scope_;
    const std::deque<std::string>& resources_;
    std::size_t enough_;
    std::vector<group> groups_{};
    std::vector<std::size_t> place_of_{};  // in `groups_`, by number of the resource
    std::size_t bytes_ = 0;
    std::uint64_t items_ = 0;
    std::vector<request> done_{};
    text_buffer out_{}, spare_{};  // their memory is used again
};

}  // namespace otlp
