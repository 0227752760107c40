// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Whatever names a trace, an argument or a file has, no program's output or error commands the
/// terminal that shows it; and output that cannot be written is an error.

#include <sys/wait.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <recorder/scratch.hpp>
#include <shown.hpp>
#include <trace_ring/recorder/recorder.hpp>

BOOST_AUTO_TEST_SUITE(terminal_text)

namespace tr = trace_ring;

namespace {

struct red : tr::event<"a\x1b]0;title\x07\x1b[31mred", tr::field<"n", int>> {};
struct lines : tr::event<"two\nlines\u202E", tr::field<"n", int>> {};

struct ended {
    int status;
    std::string said;  ///< on either
};
ended run(const std::string& command) {
    ended out{-1, {}};
    std::FILE* const from = ::popen((command + " 2>&1").c_str(), "re");
    BOOST_REQUIRE(from != nullptr);
    for (int c = 0; (c = std::getc(from)) != EOF;) out.said += static_cast<char>(c);
    const int status = ::pclose(from);
    if (WIFEXITED(status)) out.status = WEXITSTATUS(status);
    return out;
}
bool is_plain(std::string_view text) {
    for (const char c : text) {
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r') || c == 0x7F)
            return false;
    }
    return text.find("\u202E") == text.npos && text.find("\u009B") == text.npos;
}
bool has(const ended& out, std::string_view text) {
    return out.said.find(text) != out.said.npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_of_others_is_shown_on_one_line_and_commands_nothing) {
    BOOST_TEST(shown("plain \u00e9 \\x1b") == "plain \u00e9 \\x1b");
    BOOST_TEST(shown("\x1b[31m\n\t\\\u202E\xff") == "\\x1b[31m\\n\\t\\\\xe2\\x80\\xae\\xff");
    BOOST_TEST(shown("\\") == "\\");
    BOOST_TEST(shown("").empty());
}

BOOST_AUTO_TEST_CASE(names_of_events_are_listed_without_what_they_command) {
    const test::folder folder;
    const std::string file = folder / "names.trace";
    {
        tr::recorder recorder{{.file = file, .size = 1 << 16}};
        recorder.record<red>(1);
        recorder.record<lines>(2);
    }
    const std::string control = TRACE_CONTROL " '" + file + "' ";
    const auto listed = run(control + "--list");
    BOOST_TEST(listed.status == 0);
    BOOST_TEST(is_plain(listed.said));
    BOOST_TEST(has(listed, "on   a\\x1b]0;title\\x07\\x1b[31mred\n"));
    BOOST_TEST(has(listed, "on   two\\nlines\\xe2\\x80\\xae\n"));
    const auto matched = run(control + "--disable \"$(printf '\\033[31m*')\"");
    BOOST_TEST(is_plain(matched.said));
    BOOST_TEST(has(matched, "[31m*: 0 event types disabled"));
    for (const std::string way : {"", "--stats", "--format json", "--format csv"}) {
        const auto told = run(TRACE_REDUCE " " + way + " '" + file + "'");
        BOOST_TEST(told.status == 0);
        BOOST_TEST(is_plain(told.said), way);
    }
}

BOOST_AUTO_TEST_CASE(a_request_to_a_program_that_has_ended_is_an_error) {
    const test::folder folder;
    const std::string file = folder / "ended.trace";
    const auto ask = [&](const std::string& option) {
        return run(TRACE_CONTROL " '" + file + "' " + option);
    };
    {
        tr::recorder recorder{{.file = file, .size = 1 << 16}};
        recorder.record<red>(1);
        BOOST_TEST(ask("--pause").status == 0);
        BOOST_TEST(ask("--resume").status == 0);
    }
    for (const std::string option : {"--pause", "--resume", "--snapshot"}) {
        const auto refused = ask(option);
        BOOST_TEST(refused.status == 1);
        BOOST_TEST(has(refused, "ended.trace: no program records into it"));
    }
}

BOOST_AUTO_TEST_CASE(errors_quote_names_without_what_they_command) {
    const test::folder folder;
    const std::string file = folder / "\x1b[31mred\n\u202E";
    for (const std::string program : {TRACE_CONTROL, TRACE_REDUCE}) {
        const auto missing = run(program + " '" + file + "'");
        BOOST_TEST(missing.status != 0);
        BOOST_TEST(is_plain(missing.said));
        BOOST_TEST(has(missing, "\\x1b[31mred\\n\\xe2\\x80\\xae"));
    }
    std::ofstream(file) << "no trace";
    for (const std::string program : {TRACE_CONTROL, TRACE_REDUCE}) {
        const auto foreign = run(program + " '" + file + "'");
        BOOST_TEST(foreign.status != 0);
        BOOST_TEST(is_plain(foreign.said));
    }
}

BOOST_AUTO_TEST_CASE(output_that_cannot_be_written_is_an_error) {
    const test::folder folder;
    const std::string file = folder / "names.trace";
    const tr::recorder recorder{{.file = file, .size = 1 << 16}};
    const auto full = run("(" TRACE_CONTROL " '" + file + "' --list 2>&1 >/dev/full)");
    BOOST_TEST(full.status == 1);
    BOOST_TEST(has(full, "trace-control: standard output: No space left on device"));
    BOOST_TEST(run(TRACE_CONTROL " '" + file + "' --list >/dev/null").status == 0);
}

BOOST_AUTO_TEST_SUITE_END()
