#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Whether the headers compile in every way in which a user may compile them, without a warning.

    ways.py macros|quick|libcxx|newest|musl|all INCLUDE -- COMPILER ARGUMENT...

macros  All headers in INCLUDE, behind the macros that system headers, Qt, X11 and Windows define
        under names that a program may also use. Code that defines such macros has usually included the
        C++ library before, so this does too. Then again behind the system headers alone.
quick   A program that uses the library's templates (uses.cpp), with the warnings that a strict user
        turns on, and with the options that change what the headers see. A few seconds.
libcxx  The same program with libc++. Exits with 77 if that is not installed.
newest  The newest compilers that Debian 12 has, in the newest dialects, with both C++ libraries.
musl    All headers with musl in the place of glibc, by clang++ and libc++: compiled, as Debian has no
        C++ library that is built for musl to link.
all     Compilers, dialects, optimization, code models, sanitizers, 32 bits: minutes.

The headers are found by -I, as a user's own are, so that no warning in them is left out.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

MACROS = """
#define slots
#define signals public
#define emit
#define foreach(variable, container) for (variable : container)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define major(device) ((device) >> 8)
#define minor(device) ((device) & 0xFF)
#define makedev(major_, minor_) ((major_) << 8 | (minor_))
#define linux 1
#define unix 1
#define interface struct
#define near
#define far
#define small char
#define ERROR 0
#define DEBUG 1
#define IN
#define OUT
#define OPTIONAL
#define TRUE 1
#define FALSE 0
#define True 1
#define False 0
#define Bool int
#define None 0L
#define Status int
#define Always 2
#define Success 0
#define Complex 0
#define KeyPress 2
#define Above 0
#define Below 1
#define check(assertion)
#define verify(assertion)
#define I 1.0i
#define J 1.0i
#define imaginary _Imaginary
#define V(name) name
#define _(text) text
#define N_(text) text
#define barrier() asm volatile("")
#define lines 24
#define columns 80
#define buttons 3
#define tab "\\t"
#define bell "\\a"
#define newline "\\n"
#define OK 0
#define ERR (-1)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define howmany(x, y) (((x) + ((y) - 1)) / (y))
#define roundup(x, y) ((((x) + ((y) - 1)) / (y)) * (y))
#define CTRL(x) ((x) & 037)
#define p_class __p_class
#define p_type __p_type
#define p_time __p_time
#define _B 1
#define _C 2
#define _L 4
#define _N 8
#define _P 16
#define _S 32
#define _U 64
#define _X 128
"""
# Real ones, as far as they are installed: with them come those that nobody thought of above.
SYSTEM = ("complex.h tgmath.h ctype.h curses.h term.h resolv.h sys/sysmacros.h sys/param.h sys/stat.h "
          "sys/ttydefaults.h sys/ucontext.h termios.h signal.h unistd.h syslog.h netdb.h obstack.h "
          "elf.h link.h assert.h X11/Xlib.h X11/Xutil.h").split()
# What a header that keeps to none of this would say.
PLANTED = ("int slots = 1;", "inline int near(int far) { return far; }", "enum class kind { interface };",
           "int least = std::min(1, 2);", "namespace own { int check(int n) { return n; } }", "struct None {};",
           "template <int... I> struct indices {};", "struct table { int columns; };")
INCLUDE = re.compile(r"^#\s*include\s*<([^>]+)>", re.M)
USES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "uses.cpp")


def compiles(command, source):
    return subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=source, text=True,
                          check=False, capture_output=True)


def headers(folder):
    """The library's headers, and those of others that they include."""
    own, others = [], set()
    for at, _, names in sorted(os.walk(folder)):
        for name in sorted(name for name in names if name.endswith(".hpp")):
            path = os.path.join(at, name)
            own.append(os.path.relpath(path, folder))
            with open(path, encoding="utf-8") as file:
                others.update(INCLUDE.findall(file.read()))
    return own, sorted(others - set(own))


def included(names):
    return "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in names)


def check_macros(folder, command):
    own, others = headers(folder)
    command = [*command, "-std=gnu++20"]  # defines linux and unix itself
    undefined = "".join(f"#undef {name}\n" for name in re.findall(r"#define (\w+)", MACROS))
    before = included(others) + included(SYSTEM) + undefined + MACROS
    done = compiles(command, before + "".join(f"#include <{name}>\n" for name in own))
    if done.returncode != 0:
        print(done.stderr)
        return 1
    # System headers may also come first, before what the library includes: Boost, for example, has
    # template parameters that <complex.h> redefines.
    done = compiles(command, included(SYSTEM) + "".join(f"#include <{name}>\n" for name in own))
    if done.returncode != 0:
        print(f"behind system headers alone:\n{done.stderr}")
        return 1
    for planted in PLANTED:
        if compiles(command, "#include <algorithm>" + MACROS + planted + "\n").returncode == 0:
            print(f"nothing was found wrong with: {planted}")
            return 1
    print(f"{len(own)} headers compile behind {MACROS.count('#define')} macros")
    return 0


# --- Warnings ------------------------------------------------------------------------------------

STRICT = """-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wdouble-promotion -Wuseless-cast
    -Wcast-align=strict -Weffc++ -Wswitch-default -Wold-style-cast -Wsign-conversion -Wundef
    -Wzero-as-null-pointer-constant -Wextra-semi -Wsuggest-override -Wduplicated-cond
    -Wduplicated-branches -Wlogical-op -Wformat=2 -Wredundant-decls -Wcast-qual -Wnon-virtual-dtor
    -Woverloaded-virtual -Wmissing-declarations -Wfloat-conversion -Wunused-macros
    -Wctor-dtor-privacy -Wsign-promo -Wstrict-null-sentinel -Wcomma-subscript -Wvolatile
    -Wunused-const-variable=2 -Wdeprecated-copy-dtor -Wshift-overflow=2 -Wredundant-tags
    -Wmismatched-tags -Wimplicit-fallthrough=5 -Wdate-time -Wvla""".split()
# Everything that clang has, but these:
EVERYTHING = """-Weverything
    -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-c++20-compat
    -Wno-padded
    -Wno-switch-enum
    -Wno-float-equal
    -Wno-weak-vtables
    -Wno-global-constructors -Wno-exit-time-destructors
    -Wno-reserved-identifier
    -Wno-alloca
    -Wno-disabled-macro-expansion""".split()
# c++98-compat, c++20-compat   the library is C++20
# padded                       says where the compiler pads: the layouts that matter are asserted
# switch-enum                  wants every enumerator even where there is a default for the others
# float-equal                  where numbers are compared exactly, exactly is meant
# weak-vtables                 no header-only class has a member function out of line
# global-constructors, exit-time-destructors   event types are registered when a library is loaded,
#                              and taken off when it is unloaded; tables of texts are kept
# reserved-identifier          names that the linker gives, and functions that compilers call
# alloca                       one use, of at most the bytes of a sub-buffer (recorder/cpu)
# disabled-macro-expansion     the C library's own: sa_handler

# --- Ways ----------------------------------------------------------------------------------------


class Way:
    """One command, with -Werror. `links`: it makes a program, which is run if `runs`."""

    def __init__(self, name, compiler, flags, source=USES, links=False, runs=True, headers_too=False):
        self.name, self.compiler, self.flags = name, compiler, flags.split()
        self.source, self.links, self.runs, self.headers_too = source, links, runs, headers_too


# A file that only records, where code has to be generated: warnings and errors of the back end.
SITE = """#include <trace_ring/recorder/site.hpp>
#include <trace_ring/recorder/spans.hpp>
struct sent : trace_ring::event<"sent", trace_ring::field<"id", int>> {};
struct asked : trace_ring::span<"asked"> {};
struct kept : trace_ring::event<"kept"> { static constexpr bool counted = true; };
bool send(trace_ring::recorder& recorder, int id) {
    auto open = recorder.scope<asked>();
    return recorder.reserve<sent>(id).commit() && recorder.record<kept>() && recorder.record<sent>(id);
}
"""
# One that has fences.
RING = """#include <trace_ring/ring/ring.hpp>
struct table : trace_ring::policies<trace_ring::record::sequenced<int>> {};
trace_ring::ring<table> ring;
bool write(int number) { return ring.write(number) && ring.reader().next(); }
"""
GCC, CLANG = "g++", "clang++"
NO_CALLS = " -fno-exceptions -fno-rtti -fno-threadsafe-statics"

QUICK = [
    Way("g++, every warning, checked containers", GCC, " ".join(STRICT) +
        " -O1 -D_FORTIFY_SOURCE=2 -D_GLIBCXX_DEBUG -D_GLIBCXX_DEBUG_PEDANTIC -fsyntax-only"),
    Way("clang++, every warning", CLANG, " ".join(EVERYTHING) + " -fsyntax-only"),
    Way("ThreadSanitizer", GCC, "-O1 -fsanitize=thread -c", RING),
    Way("the large code model", GCC, "-O1 -mcmodel=large -fPIC -c", SITE),
]
LIBCXX = [Way("libc++", CLANG, "-stdlib=libc++ -Wall -Wextra -O0", links=True)]
ALL = [
    Way(f"{compiler} {dialect}", compiler, f"-std={dialect} -Wall -Wextra -Wpedantic -fsyntax-only",
        headers_too=True)
    for compiler, dialect in ((GCC, "gnu++20"), (GCC, "c++23"), (CLANG, "gnu++20"), (CLANG, "c++2b"))
] + [
    Way(f"{compiler} {flags}", compiler, flags + " -Wall -Wextra", links=True)
    for compiler, flags in (
        (GCC, "-O2 -D_FORTIFY_SOURCE=2"), (GCC, "-O2 -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS"),
        (GCC, "-O3 -Wnull-dereference -Wstrict-overflow=2 -Warray-bounds=2 -Wstringop-overflow=4"),
        (GCC, "-O0 -D_GLIBCXX_DEBUG -D_GLIBCXX_DEBUG_PEDANTIC"), (GCC, "-O2 -flto -Wodr -fno-plt"),
        (GCC, "-O1 -fno-strict-aliasing -funsigned-char -fno-pic -no-pie"),
        (GCC, "-O1 -fPIE -pie -g3"), (GCC, "-O1 -fPIC"), (GCC, "-O1 -mcmodel=large -fPIC"),
        (GCC, "-O1 -mcmodel=large -fno-pic -no-pie"), (GCC, "-O1 -mcmodel=medium -fPIC"),
        (GCC, "-Os" + NO_CALLS), (GCC, "-O1 -fsanitize=thread"), (GCC, "-O1 -fsanitize=address,undefined"),
        (GCC, "-O2 -fno-inline -fvisibility=hidden -ffunction-sections -Wl,--gc-sections"),
        (CLANG, "-O2 -D_FORTIFY_SOURCE=2"), (CLANG, "-O3 -fPIC"), (CLANG, "-Os" + NO_CALLS),
        (CLANG, "-O1 -mcmodel=large -fPIC"), (CLANG, "-O1 -fno-pic -no-pie -funsigned-char"),
        (CLANG, "-O1 -fsanitize=thread"), (CLANG, "-O1 -fsanitize=address,undefined"))
] + [
    # Enumerations of one byte change the C library's own structures, so nothing is linked or run.
    Way("enumerations as short as can be", GCC, "-O1 -fshort-enums -Wall -Wextra -c"),
    Way("every warning, optimized", GCC, " ".join(STRICT) + " -O2 -Wnull-dereference -c"),
    Way("every warning, all headers", GCC, " ".join(STRICT) + " -fsyntax-only", headers_too=True),
    Way("every warning of clang, all headers", CLANG, " ".join(EVERYTHING) + " -fsyntax-only",
        headers_too=True),
    # Not useless-cast: a size_t has 32 bits here, and is cast to 32 bits for the others.
    Way("32 bits", GCC, "-m32 -O1 -Wall -Wextra -Wconversion", links=True),
    Way("32 bits, large files and times", GCC,
        "-m32 -O1 -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 -Wall -Wextra", links=True),
    Way("32 bits, clang++", CLANG, "-m32 -O1 -fPIC -Wall -Wextra -c"),
    Way("tracing compiled away", GCC, "-O1 -DTRACE_RING_DISABLE -Wall -Wextra -fsyntax-only",
        headers_too=True),
] + [Way(f"libc++ {flags}", CLANG, "-stdlib=libc++ -Wall -Wextra " + flags, links=True)
     for flags in ("-O2 -std=c++20", "-O1 -std=c++2b", "-O1 -fno-exceptions")]

# Debian 12 has no newer g++ than its default. The stable_sort of libstdc++ 12 uses a function that the
# same library declares deprecated, which newer releases of clang report in every program.
NEWEST_CLANG = "clang++-19"
STANDARD_WARNINGS = " -Wall -Wextra -Wpedantic -Wconversion -Wshadow"
BY_LIBRARY = (" -Wno-deprecated-declarations", " -stdlib=libc++")
NEWEST = [Way("g++ c++23", GCC, "-std=c++23 -O2" + STANDARD_WARNINGS, links=True)] + [
    Way(f"{NEWEST_CLANG} {dialect}{library}", NEWEST_CLANG,
        f"-std={dialect} -O1" + STANDARD_WARNINGS + library, links=True)
    for library in BY_LIBRARY for dialect in ("c++20", "c++23", "c++26")
] + [
    Way(f"{NEWEST_CLANG} c++26{library}, all headers", NEWEST_CLANG,
        "-std=c++26 -fsyntax-only" + STANDARD_WARNINGS + library, headers_too=True)
    for library in BY_LIBRARY
] + [
    Way(f"{NEWEST_CLANG}, libc++ with all of its checks", NEWEST_CLANG,
        "-stdlib=libc++ -O1 -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_DEBUG", links=True),
    # unsafe-buffer-usage: wants a container for every array; a trace is mapped memory.
    Way(f"{NEWEST_CLANG}, every warning", NEWEST_CLANG, " ".join(EVERYTHING) +
        " -Wno-unsafe-buffer-usage -stdlib=libc++ -fsyntax-only"),
]

# The machine's own shortcomings, by what a trivial program needs.
TRIVIAL = "#include <string>\n#include <linux/perf_event.h>\nint main() { return std::string().size(); }\n"


def compilers(command):
    """The commands of both compilers, without what the quick build adds for one of them."""
    rest = [a for a in command[1:] if a.startswith(("-I", "-D", "-std")) or "boost" in a]
    found = {GCC: shutil.which("g++"), CLANG: shutil.which("clang++-14") or shutil.which("clang++")}
    name = os.path.basename(command[0])
    found[CLANG if "clang" in name else GCC] = command[0]
    found[NEWEST_CLANG] = shutil.which(NEWEST_CLANG)
    return {name: [path, *rest] for name, path in found.items() if path}


def try_way(way, commands, folder, sources):
    """What is wrong (None: nothing), and why it could not be tried."""
    if way.compiler not in commands:
        return None, f"no {way.compiler} here"
    command = [*commands[way.compiler], *way.flags, "-Werror"]
    if way.compiler == NEWEST_CLANG and "-stdlib=libc++" in command:
        at = command.index("-stdlib=libc++")
        command[at:at + 1] = newest_libcxx()[1]
        command += ["-Wno-unused-command-line-argument"]  # of the linker, where nothing is linked
    if "-m32" in way.flags:
        command += ["-idirafter", "/usr/include/x86_64-linux-gnu"]
    at = tempfile.mkdtemp(dir=folder)
    program = os.path.join(at, "program")
    output = ["-o", program] if way.links or "-c" in way.flags else []
    run = lambda source, language=(): subprocess.run(  # noqa: E731
        [*command, *language, *([source] if source else []), *output, "-pthread"], text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "LC_ALL": "C"})
    with open(os.path.join(at, "trivial.cpp"), "w", encoding="utf-8") as file:
        file.write(TRIVIAL)
    done = subprocess.run([*command, "-w", "-Wno-error", file.name, *output, "-pthread"], text=True,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        return None, "a program of one line does not compile here: " + done.stdout.splitlines()[0]
    source = way.source
    if source != USES:
        source = os.path.join(at, "site.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(way.source)
    for each in [source, *([sources] if way.headers_too else [])]:
        done = run(each)
        if done.returncode != 0:
            lines = [line for line in done.stdout.splitlines() if re.search(r"(error|warning): ", line)]
            return "\n".join(lines[:20] or done.stdout.splitlines()[:20]), None
    if way.links and way.runs:
        done = subprocess.run([program], text=True, check=False, timeout=120, cwd=at,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            return f"the program ended with {done.returncode}: {done.stdout[:2000]}", None
    return None, None


def check_ways(ways, folder, command):
    commands = compilers([*command, "-DTRACE_RING_ENABLE_X86_DS"])
    faults = skipped = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(max_workers=2) as pool:
        sources = os.path.join(scratch, "headers.cpp")
        with open(sources, "w", encoding="utf-8") as file:
            file.write("".join(f"#include <{name}>\n" for name in headers(folder)[0]))
        results = pool.map(lambda way: try_way(way, commands, scratch, sources), ways)
        for way, (fault, why_not) in zip(ways, results):
            if fault:
                print(f"{way.name}:\n{fault}")
                faults += 1
            elif why_not:
                print(f"{way.name}: not tried: {why_not}")
                skipped += 1
            else:
                print(f"{way.name}: no warning", flush=True)
    if faults == 0 and skipped == len(ways):
        return 77
    return 1 if faults else 0


# --- musl ----------------------------------------------------------------------------------------

# Names that musl 1.2.3 defines as macros, and newer releases no longer have.
REMOVED = """stat64 fstat64 lstat64 lseek64 pread64 preadv64 pwrite64 ftruncate64 fallocate64 mmap64 fcntl64
    open64 off64_t flock64 rlimit64 getrlimit64 RLIM64_INFINITY F_GETLK64 F_SETLK64""".split()


def newest_libcxx():
    """The headers of the newest libc++, and what a compiler needs to link it: installed, or where .ci/install
    unpacks it, next to another release."""
    installed = "/usr/lib/llvm-19/include/c++/v1"
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/libc++-19/usr/lib")
    unpacked = os.path.join(os.path.normpath(root), "llvm-19/include/c++/v1")
    if os.path.isdir(installed) or not os.path.isdir(unpacked):
        return installed, ["-stdlib=libc++"]
    libraries = os.path.join(os.path.normpath(root), "llvm-19/lib")
    return unpacked, ["-nostdinc++", "-isystem", unpacked, "-nostdlib++", f"-L{libraries}",
                      f"-Wl,-rpath,{libraries}", "-lc++"]


def check_musl(folder):
    """All headers with the C library musl, and nothing of glibc in reach."""
    compiler = shutil.which(NEWEST_CLANG)
    musl = f"/usr/include/{platform.machine()}-linux-musl"
    if not compiler or not os.path.isdir(musl):
        print(f"needs {NEWEST_CLANG}, libc++ and musl (Debian: clang-19, libc++-19-dev, musl-dev)")
        return 77
    own = subprocess.run([compiler, "-print-resource-dir"], text=True, check=True, capture_output=True)
    resources = own.stdout.strip()
    libcxx, _ = newest_libcxx()
    with tempfile.TemporaryDirectory() as scratch:
        # The kernel's headers and Boost's, without their neighbours.
        for name, at in (("linux", "/usr/include/linux"), ("asm-generic", "/usr/include/asm-generic"),
                         ("asm", f"/usr/include/{platform.machine()}-linux-gnu/asm"),
                         ("boost", "/usr/include/boost")):
            os.symlink(at, os.path.join(scratch, name))
        command = [compiler, f"--target={platform.machine()}-linux-musl", "-std=c++20", "-nostdinc",
                   "-nostdinc++", "-D_LIBCPP_HAS_MUSL_LIBC", f"-I{folder}",
                   "-DTRACE_RING_ENABLE_X86_DS", *STANDARD_WARNINGS.split(), "-Werror"]
        for at in (libcxx, os.path.join(resources, "include"), musl, scratch):
            command += ["-isystem", at]
        done = compiles(command, TRIVIAL)
        if done.returncode != 0:
            print("a program of one line does not compile here with musl:\n" + done.stderr[:1000])
            return 77
        if compiles(command, "#include <execinfo.h>\n").returncode == 0:
            print("a header that only glibc has is found: the headers are not compiled with musl")
            return 1
        with open(USES, encoding="utf-8") as file:
            uses = file.read()
        all_own = "".join(f"#include <{name}>\n" for name in headers(folder)[0])
        system = included("fcntl.h sys/mman.h sys/resource.h sys/stat.h sys/uio.h unistd.h".split())
        newer = system + "".join(f"#undef {name}\n" for name in REMOVED)
        for what, source in (("all headers", all_own), ("a program", uses),
                             ("all headers, with a newer musl", newer + all_own)):
            done = compiles(command, source)
            if done.returncode != 0:
                print(f"{what}:\n{done.stderr[:4000]}")
                return 1
            print(f"musl, {what}: no warning")
    return 0


def main(arguments):
    what, folder, command = arguments[0], arguments[1], arguments[arguments.index("--") + 1:]
    if what == "macros":
        return check_macros(folder, command)
    if what == "musl":
        return check_musl(folder)
    ways = {"quick": QUICK, "libcxx": LIBCXX, "newest": NEWEST, "all": ALL}[what]
    return check_ways(ways, folder, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
