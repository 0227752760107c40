// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include <fuzz/targets.hpp>

#include <fstream>

namespace trace_ring_test::fuzz {

std::span<const target> targets() {
    static const target all[] = {
#if defined(TRACE_RING_ENABLE_X86_DS)
        aux_buffer_target,
#endif
        clause_code_target,
        control_target,
        cptrap_target,
        das_target,
#if defined(TRACE_RING_ENABLE_X86_DS)
        debug_store_target,
#endif
        drain_target,
        drain_raced_target,
        elf_core_target,
        event_filter_target,
        expression_target,
        live_mapping_target,
        live_mapping_raced_target,
        position_text_target,
        trace_file_target,
        writer_target,
        writer_raced_target,
    };
    return all;
}

const target* find(const std::string& name) {
    for (const auto& each : targets()) {
        if (each.name == name) return &each;
    }
    return nullptr;
}

bool write_seeds(const target& what, const std::string& folder) {
    unsigned number = 0;
    for (const auto& seed : what.seeds()) {
        std::ofstream out(folder + "/seed-" + std::to_string(number++), std::ios::binary);
        out.write(reinterpret_cast<const char*>(seed.data()),
                  static_cast<std::streamsize>(seed.size()));
        if (!out.flush()) return false;
    }
    return true;
}

}  // namespace trace_ring_test::fuzz
