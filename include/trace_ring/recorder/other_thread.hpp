// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Records in the name of threads of other processes: for programs that learn of events instead of
/// having them, as tracers, gateways and importers do. Readers and viewers then show each thread
/// with its own records, process and name, as if it had recorded them.
/// @code
///   trace_ring::other_process shop(recorder, 1200, 8, "shop");
///   trace_ring::other_thread worker(shop, 1234, "worker");
///   {
///       const trace_ring::other_thread::scope as(worker);
///       recorder.record<order_sent>(42, 3.14);  // of thread 1234 of process 1200
///   }
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring::inline v1 {

// Other classes where tracing is compiled away, as runtime_event is.
#if defined(TRACE_RING_DISABLE)
inline namespace disabled {

class other_process {
public:
    template <class Kind>
    other_process(basic_recorder<Kind>&, std::uint32_t, std::uint32_t, const char*) noexcept {}
    [[nodiscard]] explicit operator bool() const noexcept { return false; }
};
class other_thread {
public:
    other_thread(other_process&, std::uint32_t, const char*) noexcept {}
    [[nodiscard]] explicit operator bool() const noexcept { return false; }
    class scope {
    public:
        scope() noexcept = default;
        explicit scope(const other_thread&) noexcept {}
    };
};

}  // namespace disabled
#else

/// A process in whose name this one records. Holds one of recorder_options::processes.
class other_process {
public:
    /// `word`: bytes of its words, 4 or 8. `name`: at most 32 bytes of it. The recorder must
    /// outlive this. Allocates nothing; a few system calls; O(n) in the recorder's processes.
    template <class Kind>
    other_process(basic_recorder<Kind>& in, std::uint32_t pid, std::uint32_t word,
                  const char* name) noexcept
        : lanes_(in.words_.lanes) {
        static_assert(impl::recorder_policies<Kind>::template leaves_out<family::claim>,
                      "trace_ring: lanes of processors have no threads of other processes");
        if (lanes_ == nullptr) return;
        // Lanes are found by thread-local words, of which other code may have its own.
        // order: registry.visit:D pairs with registry.enlist:A
        if (impl::the_registry.recorders[lanes_->index()].load(acquire) != lanes_) {
            lanes_ = nullptr;
            return;
        }
        slot_ = lanes_->enter_other({pid, word, name}, life_);
        if (slot_ == lanes_->memory().plan().process_count) lanes_ = nullptr;
    }
    other_process(const other_process&) = delete;
    other_process& operator=(const other_process&) = delete;
    ~other_process() {
        if (lanes_ != nullptr) lanes_->memory().leave(slot_, life_);
    }

    /// False: the recorder records nothing, has no room for another process, or was constructed by
    /// a library with its own symbols.
    [[nodiscard]] explicit operator bool() const noexcept { return lanes_ != nullptr; }

private:
    friend class other_thread;

    impl::lanes_by_thread* lanes_;
    std::uint32_t slot_ = 0;
    storage::life_lock life_{};
};

/// A thread of such a process. It holds a sub-buffer while it lives, as any thread does that
/// records; then the next one may adopt its lane.
class other_thread {
public:
    /// `name`: at most 16 bytes of it. The process must outlive this.
    other_thread(other_process& of, std::uint32_t thread, const char* name) noexcept {
        if (of) node_ = impl::enter_other_thread(of.slot_, thread, name, release_all);
    }
    other_thread(const other_thread&) = delete;
    other_thread& operator=(const other_thread&) = delete;
    /// The sub-buffer is closed at the time that the recorder's clock has then.
    ~other_thread() {
        if (node_ != nullptr) impl::leave_other_thread(*node_, release_all);
    }

    /// False: its process has no room, or there is no memory.
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }

    /// While it lives, the calling thread's records into that recorder belong to the other thread.
    /// The calling thread must not record into another recorder then. Without a thread, or with one
    /// that is false, nothing changes.
    class scope {
    public:
        scope() noexcept = default;
        /// Until it is destroyed. Used by one thread; not nested.
        explicit scope(const other_thread& of) noexcept : is_other_(of.node_ != nullptr) {
            // relaxed, all: own words
            for (std::size_t ring = 0; is_other_ && ring < layout::max_rings; ++ring) {
                before_[ring] = impl::thread_lanes[ring].load(relaxed);
                impl::thread_lanes[ring].store(&impl::block_of(*of.node_), relaxed);
            }
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() {
            for (std::size_t ring = 0; is_other_ && ring < layout::max_rings; ++ring)
                impl::thread_lanes[ring].store(before_[ring], relaxed);  // relaxed: own words
        }

    private:
        bool is_other_ = false;
        impl::lane_block* before_[layout::max_rings]{};
    };

private:
    static constexpr impl::release_lanes_of release_all = &impl::lanes_by_thread::release_all;

    impl::thread_node* node_ = nullptr;
};
#endif

}  // namespace trace_ring::inline v1
#endif
