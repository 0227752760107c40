// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Controls a recording from outside: another process maps the same file and writes the gates and
/// the request words. No thread of the recording program takes part: its next record sees a gate,
/// and its next thread that needs a sub-buffer sees a request.
/// @code
///   trace_ring::control outside("orders.trace");
///   outside.enable("order.*", false);
///   const std::uint32_t number = outside.request_snapshot();
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/glob.hpp>
#include <trace_ring/list_of.hpp>
#include <trace_ring/recorder/file/outside_trace.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1 {

/// Controls a program from outside, through the control page of its trace file. Used by one thread.
class control {
public:
    /// Opens a trace file, or `/proc/PID/fd/N` of a memory file. Throws setup_error, which names
    /// the file, the offset and the cause; EPERM if its program takes no requests
    /// (recorder_options::control). If nobody else has the file when this is destroyed, it is then
    /// as short as it was.
    explicit control(const std::string& file) {
        trace_.open_file(file, false);
        if (trace_.header().no_control.load(relaxed) != 0)  // relaxed: fixed
            fail_setup(file, "this trace takes no requests from outside", EPERM);
    }

    /// Shuts or opens the gates of all event types whose names match a glob, of every program that
    /// records into the file. Types that are registered later are not affected. Returns how many
    /// types matched.
    std::size_t enable(std::string_view glob, bool on) {
        std::size_t matched = 0;
        for_each_type([&](std::string_view name, shared_atomic<std::uint8_t>& gate) {
            if (!matches_glob(glob, name)) return;
            layout::set_gate(gate, layout::gate_event_off, !on);
            ++matched;
        });
        return matched;
    }

    /// Stops all recording into the file, or continues it.
    void pause() { set_all(true); }
    void resume() { set_all(false); }  ///< opens the gates that `pause` shut

    /// Requests a snapshot. The next writer that needs a sub-buffer writes it to the file
    /// recorder_options::snapshot_file + ".N", or the trace file's name + ".snapshot.N" if there is
    /// no such option. N is the returned number. The recorder writes not more, nor more often, than
    /// recorder_options::snapshots and snapshot_gap allow.
    std::uint32_t request_snapshot() {
        // order: snapshot.ask:A pairs with snapshot.serve:A
        return trace_.ring().snapshot_request.fetch_add(1, release) + 1;
    }
    /// True when request `number` has been served (successfully or not).
    [[nodiscard]] bool snapshot_done(std::uint32_t number) const {
        // order: snapshot.ask:B pairs with snapshot.serve:B
        return static_cast<std::int32_t>(trace_.ring().snapshot_done.load(acquire) - number) >= 0;
    }

    /// Calls `visit(name, is_open)` for every event type in the dictionary.
    template <class Visit>
    void list(Visit&& visit) {
        for_each_type([&](std::string_view name, shared_atomic<std::uint8_t>& gate) {
            visit(name, gate.load(relaxed) == 0);  // relaxed: a byte by itself
        });
    }

private:
    void set_all(bool shut) {
        for (std::uint32_t page = 0; page < trace_.plan().gate_count; ++page) {
            for (auto& gate : trace_.gates(page).gates)
                layout::set_gate(gate, layout::gate_recorder_off, shut);
        }
    }

    template <class Visit>
    void for_each_type(Visit&& visit) {
        std::string name;
        const layout::dictionary_entries types = trace_.types();
        for (auto each = types.bindings(); each.next();) {
            const auto text = types.name_at(each.at);
            if (!text.is_there) continue;
            name.clear();
            for (std::size_t i = 0; i < text.length; ++i)
                name += static_cast<char>(text.first[i].load(relaxed));  // relaxed: as above
            for_each_gate(each.root, each.id,
                          [&](auto& gate) { visit(std::string_view(name), gate); });
        }
    }
    /// Calls `visit(gate)` for event `id` of each program that uses that numbering; if none lives,
    /// of one that departed.
    template <class Visit>
    void for_each_gate(std::uint32_t root, std::uint32_t id, Visit&& visit) {
        if (id > layout::max_event_id) return;
        list_of<std::uint32_t> live;
        std::optional<std::uint32_t> departed;
        for (std::uint32_t slot = 0; slot < trace_.plan().process_count; ++slot) {
            const layout::process_entry& process = trace_.process(slot);
            // order: process.look:C pairs with process.enter:B, process.leave:A, process.dead:A
            const auto state = static_cast<layout::presence>(process.state.load(acquire));
            // relaxed, both: after the state
            const std::uint32_t page = process.gate_page.load(relaxed);
            if (process.root.load(relaxed) != root || page >= trace_.plan().gate_count) continue;
            if (state == layout::presence::departed) departed = page;
            bool is_new = state == layout::presence::live;
            for (const std::uint32_t known : live) is_new = is_new && known != page;
            if (is_new) live.push_back(page);
        }
        if (live.empty() && departed) live.push_back(*departed);
        for (const std::uint32_t page : live) visit(trace_.gates(page).gates[id]);
    }

    impl::outside_trace trace_{};
};

}  // namespace trace_ring::inline v1
#endif
