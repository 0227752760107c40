// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Where the kernel sets no uprobe, or one that changes what the program does: such points are left
// out and reported, and all others are set, however many. The reference is what the programs print.

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <string>

#include <examples/trace_clauses/clause_programs.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(clause_placing)

namespace {

using namespace clause_programs;

bool has_kernel(const ended& of) {
    if (of.err.find("not permitted") == std::string::npos &&
        of.err.find("no uprobes") == std::string::npos &&
        of.err.find("does not have it") == std::string::npos) {
        return true;
    }
    trace_ring_test::cannot_run("the kernel permits no BPF here");
    return false;
}

/// Functions that begin with a lock prefix, with a VEX prefix and opcodes that are also those of
/// jo, push and ret, and with what the kernel knows.
constexpr const char* unusual = R"(
#include <stdio.h>
#include <string.h>
typedef int v4 __attribute__((vector_size(16)));
extern "C" int locked(int *of);
extern "C" v4 like_jump(v4 of);
extern "C" v4 like_push(v4 of);
extern "C" v4 like_return(v4 of);
extern "C" int usual(int of);
__asm__(R"A(
.text
.globl locked
.type locked, @function
locked: .cfi_startproc
    lock incl (%rdi)
    mov (%rdi), %eax
    ret
    .cfi_endproc
.size locked, .-locked
.globl like_jump
.type like_jump, @function
like_jump: .cfi_startproc
    vpshufd $0x1B, %xmm0, %xmm0
    vpaddd %xmm0, %xmm0, %xmm0
    ret
    .cfi_endproc
.size like_jump, .-like_jump
.globl like_push
.type like_push, @function
like_push: .cfi_startproc
    vsqrtps %xmm0, %xmm0
    vpaddd %xmm0, %xmm0, %xmm0
    ret
    .cfi_endproc
.size like_push, .-like_push
.globl like_return
.type like_return, @function
like_return: .cfi_startproc
    vcmpps $0, %xmm0, %xmm0, %xmm0
    vpaddd %xmm0, %xmm0, %xmm0
    ret
    .cfi_endproc
.size like_return, .-like_return
.globl usual
.type usual, @function
usual: .cfi_startproc
    lea 1(%rdi), %eax
    ret
    .cfi_endproc
.size usual, .-usual
)A");
int main() {
    int counted = 0;
    v4 value = {1, 2, 3, 4};
    for (int i = 0; i < 20; ++i) {
        locked(&counted);
        counted += usual(i);
        value = like_jump(value) + like_push(value) + like_return(value);
    }
    printf("%d %d %d %d %d\n", counted, value[0], value[1], value[2], value[3]);
    return 3;
})";

}  // namespace

BOOST_AUTO_TEST_CASE(where_the_kernel_would_change_the_program_no_point_is_set_and_that_is_told) {
    const test::folder folder;
    const std::string program = folder / "unusual";
    if (!build(program, unusual, "c++", 64, "-O1")) return;
    if (text_of("/proc/cpuinfo").find(" avx ") == std::string::npos) {
        trace_ring_test::cannot_run("this processor has no AVX");
        return;
    }
    const ended alone = run(folder, program);
    for (const std::string place : {"entry", "exit"}) {
        for (const std::string names : {"l*", "u*"}) {
            const ended one =
                run(folder, std::string(TRACE_CLAUSES) + " --source kernel -e '@@begin { } " +
                                "@@uft:*:unusual:" + names + ":" + place + " { count(); }' -- " +
                                program);
            if (!has_kernel(one)) return;
            BOOST_TEST_CONTEXT(place << " of " << names << ": " << one.err) {
                BOOST_TEST(one.status == alone.status);
                BOOST_TEST(one.out.find(alone.out) != std::string::npos, one.out);
                if (names == "u*") {
                    BOOST_TEST(one.out.find("count()\n  20\n") != std::string::npos, one.out);
                } else if (place == "exit") {
                    // They return by instructions that the kernel knows.
                    BOOST_TEST(one.out.find("count()\n  80\n") != std::string::npos, one.out);
                } else {
                    BOOST_TEST(one.err.find("'locked") != std::string::npos);
                    BOOST_TEST(one.err.find("lock prefix") != std::string::npos);
                    BOOST_TEST(one.err.find("'like_jump") != std::string::npos);
                    BOOST_TEST(one.err.find(" 2 more are left out") != std::string::npos);
                }
            }
        }
        // By breakpoints, all are counted.
        const ended by_hand = run(folder, std::string(TRACE_CLAUSES) +
                                              " --source ptrace -e '@@uft:*:unusual:l*:" + place +
                                              " { count(); }' -- " + program);
        BOOST_TEST(by_hand.out.find(alone.out) != std::string::npos, by_hand.out);
        BOOST_TEST(by_hand.out.find("count()\n  80\n") != std::string::npos, by_hand.out);
    }
}

BOOST_AUTO_TEST_CASE(what_is_not_set_is_told_of_files_that_are_loaded_later_too) {
    const test::folder folder;
    const std::string library = folder / "later.so", program = folder / "loads";
    if (!build(library,
               "struct object { int count; };\n"
               "extern \"C\" void up_ref(object *o) { __atomic_fetch_add(&o->count, 1, 0); }\n"
               "extern \"C\" int unref(object *o) { const int n = o->count; "
               "__atomic_fetch_sub(&o->count, 1, 0); return n; }\n",
               "c++", 64, "-O2 -fPIC -shared -fcf-protection=none"))
        return;
    static_cast<void>(build(program,
                            "#include <dlfcn.h>\n#include <stdio.h>\n"
                            "int main(int, char **with) {\n"
                            "  void *of = dlopen(with[1], RTLD_NOW);\n"
                            "  auto up = (void (*)(int *))dlsym(of, \"up_ref\");\n"
                            "  auto down = (int (*)(int *))dlsym(of, \"unref\");\n"
                            "  int n = 1, sum = 0;\n"
                            "  for (int i = 0; i < 1000; ++i) { up(&n); sum += down(&n); }\n"
                            "  printf(\"%d %d\\n\", n, sum);\n}\n",
                            "c++", 64));
    const ended alone = run(folder, program + " " + library);
    const ended traced =
        run(folder, std::string(TRACE_CLAUSES) + " --source kernel -e '@@uft:*:" + library +
                        ":*ref:entry { count(); }' -- " + program + " " + library);
    if (!has_kernel(traced)) return;
    BOOST_TEST(traced.out.find(alone.out) != std::string::npos, traced.out);
    BOOST_TEST(traced.out.find("count()\n  1000\n") != std::string::npos, traced.out);
    BOOST_TEST(traced.err.find("'up_ref' is left out: ") != std::string::npos, traced.err);
    BOOST_TEST(traced.err.find("1 point\n") != std::string::npos, traced.err);
}

BOOST_AUTO_TEST_CASE(thousands_of_points_are_set_and_each_call_is_counted) {
    constexpr int count = 3000;
    const test::folder folder;
    std::string text;
    std::string calls;
    for (int i = 0; i < count; ++i) {
        const std::string name = "fn" + std::to_string(i);
        text += "extern \"C\" __attribute__((noinline)) int " + name +
                "(int a) { __asm__ volatile(\"\"); return a + " + std::to_string(i % 7) + "; }\n";
        calls += "  sum = " + name + "(sum);\n";
    }
    text += "int main() {\n  int sum = 0;\n" + calls + "  return sum % 100;\n}\n";
    const std::string program = folder / "many";
    if (!build(program, text, "c++", 64, "-O1 -g")) return;
    const ended alone = run(folder, program);
    for (const std::string place : {"entry { count(a >= 0); }", "exit { count(retval >= 0); }"}) {
        const ended traced =
            run(folder, std::string(TRACE_CLAUSES) +
                            " --source kernel -e '@@uft:*:many:fn*:" + place + "' -- " + program);
        if (!has_kernel(traced)) return;
        BOOST_TEST(traced.status == alone.status);
        BOOST_TEST(traced.out.find("\n  1: " + std::to_string(count) + "\n") != std::string::npos,
                   traced.out);
        BOOST_TEST(traced.err.find(std::to_string(count) + " points") != std::string::npos,
                   traced.err);
    }
}

BOOST_AUTO_TEST_CASE(where_a_function_is_inlined_no_point_fires_and_that_is_told) {
    const test::folder folder;
    const std::string program = folder / "inlined";
    if (!build(program,
               "#include <stdio.h>\n"
               "static int always(int a) { return a * 3 + 1; }\n"
               "static int partly(int a) { return a * 5 + 1; }\n"
               "int shared(int a) { return a * 7 + 2; }\n"
               "__attribute__((noinline)) int never(int a) { return shared(a) + always(a); }\n"
               "int (*volatile by_pointer)(int) = shared;\n"
               "int (*volatile other)(int) = partly;\n"
               "int main(int count, char **) {\n  int sum = 0;\n"
               "  for (int i = 0; i < 10; i++) sum += shared(i + count);\n"
               "  for (int i = 0; i < 10; i++) sum += by_pointer(i);\n"
               "  sum += never(count) + partly(count) + other(1);\n  printf(\"%d\\n\", sum);\n}\n",
               "c++", 64, "-O2 -g"))
        return;
    const std::string tool = std::string(TRACE_CLAUSES) + " -e '@@uft:*:inlined:";
    const ended shared = run(folder, tool + "shared:entry { count(); }' -- " + program);
    BOOST_TEST(shared.out.find("count()\n  10\n") != std::string::npos, shared.out);
    BOOST_TEST(shared.err.find("'shared(int)' is also inlined at 2 places, where no point fires") !=
                   std::string::npos,
               shared.err);
    const ended partly = run(folder, tool + "partly:entry { count(); }' -- " + program);
    BOOST_TEST(partly.out.find("count()\n  1\n") != std::string::npos, partly.out);
    BOOST_TEST(
        partly.err.find("'partly(int)' is also inlined at 1 place, where") != std::string::npos,
        partly.err);
    const ended always = run(folder, tool + "always:entry { count(); }' -- " + program);
    BOOST_TEST(always.status != 0);
    BOOST_TEST(
        always.err.find("is inlined at 1 place, and has no out-of-line code") != std::string::npos,
        always.err);
    const ended never = run(folder, tool + "never:entry { count(); }' -- " + program);
    BOOST_TEST(never.out.find("count()\n  1\n") != std::string::npos, never.out);
    BOOST_TEST(never.err.find("inlined at") == std::string::npos, never.err);
}

BOOST_AUTO_TEST_CASE(names_that_mean_several_functions_and_files_that_were_replaced_are_told) {
    const test::folder folder;
    const std::string program = folder / "names";
    if (!build(
            program,
            "#include <unistd.h>\nnamespace shop {\n"
            "__attribute__((noinline)) int f(int a) { __asm__ volatile(\"\"); return a; }\n"
            "__attribute__((noinline)) long f(long a) { __asm__ volatile(\"\"); return a; }\n"
            "}\n"
            "extern \"C\" __attribute__((noinline)) int rusty() "
            "__asm__(\"_ZN4shop6handle17h0123456789abcdefE\");\n"
            "int rusty() { __asm__ volatile(\"\"); return 0; }\n"
            "extern \"C\" __attribute__((noinline)) int newer() "
            "__asm__(\"_RNvMNtCskK7mfDs1mzF_1m4shopINtB2_5OrderyE6handleB4_\");\n"
            "int newer() { __asm__ volatile(\"\"); return 0; }\n"
            "extern \"C\" __attribute__((noinline)) int many(int n, ...) {\n"
            "  __asm__ volatile(\"\"); return n; }\n"
            "int main(int count, char **) {\n  if (count > 1) usleep(800000);\n"
            "  return (int)(shop::f(1) + shop::f(2L)) + rusty() + newer() + many(1, 2) - 4;\n}\n",
            "c++", 64, "-O1 -g"))
        return;
    const std::string tool = std::string(TRACE_CLAUSES) + " ";
    const auto counts = [&](const std::string& name, const std::string& count) {
        const ended made =
            run(folder, tool + "-e '@@uft:*:names:" + name + ":entry { count(); }' -- " + program);
        BOOST_TEST(made.out.find("count()\n  " + count + "\n") != std::string::npos,
                   name << made.out << made.err);
        return made.err;
    };
    BOOST_TEST(counts("\"shop::f\"", "2")
                   .find("'shop::f' means 2 functions: 'shop::f(int)', 'shop::f(long)'") !=
               std::string::npos);
    BOOST_TEST(counts("\"shop::f(long)\"", "1").find(" means ") == std::string::npos);
    BOOST_TEST(counts("\"shop::handle\"", "1").find(" means ") == std::string::npos);
    const ended rust = run(folder, tool + "-e '@@uft:*:names:\"m::x\":entry {}' -- " + program);
    if (rust.err.find("without libiberty") != std::string::npos) {
        trace_ring_test::cannot_run("names of Rust are not read here (Debian: libiberty-dev)");
    } else {
        BOOST_TEST(rust.err.find("'m::shop::Order<u64>::handle'") != std::string::npos, rust.err);
        for (const char* name : {"m::shop::Order<u64>::handle", "m::shop::Order::handle",
                                 "<m::shop::Order<u64>>::handle", "m::shop::*"})
            static_cast<void>(counts(std::string("\"") + name + "\"", "1"));
    }
    const ended further =
        run(folder, tool + "-e '@@uft:*:names:many:entry { count(arg1); }' -- " + program);
    BOOST_TEST(further.err.find("further arguments") != std::string::npos, further.err);
    BOOST_TEST(run(folder, tool + "--list names:many -- " + program).out.find("(int n, ...)") !=
               std::string::npos);
    // It runs, and another file has its name by now.
    const std::string said =
        printed(program + " slowly & cp " + program + " " + program + ".new; sleep 0.1; mv " +
                program + ".new " + program + "; timeout 20 " + tool +
                "-e '@@uft:*:names:many:entry { count(); }' -p $! 2>&1; wait");
    BOOST_TEST(said.find("which was deleted or replaced since") != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(arrays_of_bytes_are_numbers_and_those_of_char_are_texts) {
    // As text, arrays of bytes end at their first 0: several have one key then.
    const test::folder folder;
    const std::string program = folder / "bytes";
    if (!build(program,
               "#include <stdint.h>\n#include <stdio.h>\n"
               "struct frame { char name[4]; uint8_t mac[6]; bool set[3]; signed char s[3];\n"
               "  unsigned char u[3]; char8_t t[3]; unsigned short w[2]; char behind; };\n"
               "extern \"C\" __attribute__((noinline)) int send(frame *f) {\n"
               "  __asm__ volatile(\"\" : : \"r\"(f) : \"memory\"); return f->mac[0]; }\n"
               "int main() {\n"
               "  frame f = {{'a', 'b', 'c', 'd'}, {0, 27, 68, 0, 58, 183}, {true, false, true},\n"
               "             {0, -1, 5}, {0, 255, 65}, {u8'x', u8'y', 0}, {0, 7}, '!'};\n"
               "  for (int i = 0; i < 3; ++i) { f.mac[1] = 27 + i; send(&f); }\n"
               "  puts(\"end\");\n}\n",
               "c++", 64, "-O1 -g -std=c++20"))
        return;
    const ended traced =
        run(folder, std::string(TRACE_CLAUSES) +
                        " -e '@@uft:*:bytes:send:entry { capture(f->mac, f->set, f->s, f->u, f->w, "
                        "f->name, str(f->name), f->t); count(f->mac); }' -- " +
                        program);
    BOOST_TEST_CONTEXT(traced.out << traced.err) {
        BOOST_TEST(traced.out.find("f->mac=[0 27 68 0 58 183] f->set=[1 0 1] f->s=[0 -1 5] "
                                   "f->u=[0 255 65] f->w=[0 7] f->name=\"abcd\" "
                                   "str(f->name)=\"abcd\" f->t=\"xy\"\n") != std::string::npos);
        for (const std::string key : {"27", "28", "29"}) {
            BOOST_TEST(traced.out.find("  [0 " + key + " 68 0 58 183]: 1\n") != std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
