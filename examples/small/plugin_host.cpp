// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// A program with one recorder, and a plugin that records into it. The plugin is unloaded before
/// the trace is read: the trace keeps the names and fields of the plugin's events.
///   plugin_host PLUGIN       the file name of plugin.so, which is built from plugin.cpp

#include <dlfcn.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <variant>

#include <trace_ring/reading.hpp>
#include <trace_ring/trace_ring.hpp>

namespace {

namespace reduce = trace_ring::reduce;

struct loaded : trace_ring::event<"plugin.loaded", trace_ring::field<"times", int>> {};

using plugin_function = int(trace_ring::recorder&, int);

int run_plugin(trace_ring::recorder& recorder, const char* file) {
    void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::fprintf(stderr, "plugin_host: %s\n", dlerror());
        return -1;
    }
    const auto run = reinterpret_cast<plugin_function*>(dlsym(library, "plugin_run"));
    const int kept = run != nullptr ? run(recorder, 9) : -1;
    dlclose(library);
    return kept;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 2) {
        std::fputs("usage: plugin_host PLUGIN\n", stderr);
        return 2;
    }
    trace_ring::recorder recorder{{.size = 1 << 20}};
    for (int times = 1; times <= 2; ++times) {  // the second time, it may be at another address
        recorder.record<loaded>(times);
        if (const int kept = run_plugin(recorder, arguments[1]); kept != 3) return 1;
    }
    std::printf("the plugin is %s\n",
                dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == nullptr ? "unloaded" : "loaded");

    const auto [memory, bytes] = recorder.bytes();
    const auto trace = reduce::trace_file::from({memory, bytes});
    std::map<std::string, int> records;
    int kept = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<reduce::record_view>(item);
        if (record == nullptr) return 1;  // a loss, or damage
        ++records[std::string(record->name())];
        if (const auto field = record->field("kept"); field && field.u64() != 0) ++kept;
    }
    for (const auto& [name, times] : records) std::printf("%s: %d\n", name.c_str(), times);
    std::printf("kept: %d\n", kept);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "plugin_host: %s\n", error.what());
    return 1;
}
