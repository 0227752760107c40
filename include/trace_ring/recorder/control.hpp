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
#include <trace_ring/format/check_layout.hpp>
#include <trace_ring/glob.hpp>
#include <trace_ring/list_of.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/file/kept_file.hpp>
#include <trace_ring/recorder/trim/trim.hpp>

namespace trace_ring::inline v1 {

class control {
public:
    /// Opens a trace file, or `/proc/PID/fd/N` of a memory file. Throws setup_error, which names
    /// the file, the offset and the cause; EPERM if its program takes no requests
    /// (recorder_options::control).
    explicit control(const std::string& file) {
        file_.keep(impl::open_to_map(file), file.c_str());
        file_.has_name(file.c_str());
        const std::uint64_t bytes = storage::file_bytes(file_.number());
        if (bytes == 0) fail_setup(file, "offset 0: the file is empty", EINVAL);
        memory_ = storage::mapping::of_file(file, file_.number(), bytes);
        if (const auto fault = layout::check_layout(memory_.data(), bytes, plan_)) {
            fail_setup(file, fault_at(fault.offset, fault.what));
        }
        // relaxed: fixed
        if (static_cast<layout::file_header*>(static_cast<void*>(memory_.data()))
                ->no_control.load(relaxed) != 0) {
            fail_setup(file, "this trace takes no requests from outside", EPERM);
        }
    }

    control(const control&) = delete;
    control& operator=(const control&) = delete;
    /// Of a trace that nobody records into: it is then as short as it was.
    ~control() {
        memory_.reset();
        file_.close_and(impl::trim_file);
    }

    /// Shuts or opens the gates of all event types whose names match a glob, of every program that
    /// records into the file. Types that are registered later are not affected. Returns how many
    /// types matched.
    std::size_t enable(std::string_view glob, bool on) {
        std::size_t matched = 0;
        for_each_type([&](std::string_view name, shared_atomic<std::uint8_t>& gate) {
            if (!matches_glob(glob, name)) return;
            set(gate, layout::gate_event_off, !on);
            ++matched;
        });
        return matched;
    }

    /// Stops all recording into the file, or continues it.
    void pause() { set_all(true); }
    void resume() { set_all(false); }

    /// Asks for a snapshot. The next writer that needs a sub-buffer writes it, to the trace file's
    /// name (or recorder_options::snapshot_file) with ".N" appended, N being the number returned;
    /// not more, nor more often, than recorder_options::snapshots and snapshot_gap allow.
    std::uint32_t request_snapshot() {
        // order: snapshot.ask:A pairs with snapshot.serve:A
        return ring().snapshot_request.fetch_add(1, release) + 1;
    }
    /// True when request `number` has been served (successfully or not).
    [[nodiscard]] bool snapshot_done(std::uint32_t number) const {
        // order: snapshot.ask:B pairs with snapshot.serve:B
        return static_cast<std::int32_t>(ring().snapshot_done.load(acquire) - number) >= 0;
    }

    /// Calls `visit(name, is_open)` for every event type in the dictionary.
    template <class Visit>
    void list(Visit&& visit) {
        for_each_type([&](std::string_view name, shared_atomic<std::uint8_t>& gate) {
            visit(name, gate.load(relaxed) == 0);  // relaxed: a byte by itself
        });
    }

private:
    [[nodiscard]] layout::ring_state& ring() const {
        return *static_cast<layout::ring_state*>(static_cast<void*>(memory_.data() + plan_.ring));
    }

    static void set(shared_atomic<std::uint8_t>& gate, std::uint8_t bit, bool shut) {
        // relaxed, to the end: a gate is advice that takes effect soon
        if (shut) {
            gate.fetch_or(bit, relaxed);
        } else {
            gate.fetch_and(static_cast<std::uint8_t>(~bit), relaxed);
        }
    }

    void set_all(bool shut) {
        for (std::uint64_t i = 0; i < std::uint64_t{plan_.gate_count} * layout::format_page_bytes;
             ++i) {
            set(word_at<std::uint8_t>(memory_.data() + plan_.gates, as_size(i)),
                layout::gate_recorder_off, shut);
        }
    }

    template <class Visit>
    void for_each_type(Visit&& visit) {
        std::string name;
        const layout::dictionary_entries types{memory_.data() + plan_.dictionary,
                                               plan_.dictionary_bytes};
        for (auto each = types.bindings(); each.next();) {
            const std::uint64_t at = each.at;
            const layout::type_entry& entry = types.type_at(at);
            // order: dictionary.read:B pairs with dictionary.write:A
            if (entry.magic.load(acquire) != layout::type_magic) continue;
            // relaxed, to the end: written before the magic; checked, for the file may be damaged
            const std::uint64_t bytes = entry.bytes.load(relaxed);
            const std::uint64_t name_at =
                sizeof entry + sizeof(layout::field_entry) * entry.fields.load(relaxed);
            const std::uint64_t length = entry.name_bytes.load(relaxed);
            if (bytes > types.size - at || name_at + length > bytes) continue;
            name.clear();
            for (std::uint64_t i = 0; i < length; ++i) {
                name += static_cast<char>(
                    word_at<std::uint8_t>(types.base + at, as_size(name_at + i)).load(relaxed));
            }
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
        for (std::uint32_t slot = 0; slot < plan_.process_count; ++slot) {
            const auto& process =
                *static_cast<const layout::process_entry*>(static_cast<const void*>(
                    memory_.data() + plan_.processes + slot * sizeof(layout::process_entry)));
            // order: process.look:C pairs with process.enter:B, process.leave:A, process.dead:A
            const auto state = static_cast<layout::presence>(process.state.load(acquire));
            // relaxed, both: after the state
            const std::uint32_t page = process.gate_page.load(relaxed);
            if (process.root.load(relaxed) != root || page >= plan_.gate_count) continue;
            if (state == layout::presence::departed) departed = page;
            bool is_new = state == layout::presence::live;
            for (const std::uint32_t known : live) is_new = is_new && known != page;
            if (is_new) live.push_back(page);
        }
        if (live.empty() && departed) live.push_back(*departed);
        for (const std::uint32_t page : live) {
            visit(word_at<std::uint8_t>(
                memory_.data() + plan_.gates + page * layout::format_page_bytes, id));
        }
    }

    impl::kept_file file_{};
    storage::mapping memory_{};
    layout::plan plan_{};
};

}  // namespace trace_ring::inline v1
#endif
