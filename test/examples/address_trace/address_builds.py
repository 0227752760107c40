#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Builds projects by `address-trace cc` and `address-trace c++` as if these were compilers.

    address_builds.py --address-trace PROGRAM --cmake CMAKE

- A project of CMake: a static library, a shared one, a program in C and one in C++20 with
  exceptions and a precompiled header.
- A project with a configure script and a Makefile. The script asks of the compiler what those of
  autoconf and libtool ask, and links libraries as these do.

Each is built with several sets of flags. The programs must print what they print if clang builds
them, have no gaps, and the references of a function of a known number of them. With
TRACE_RING_QUICK in the environment only the configure script is used, with one set of flags. Exits
with 77 if there is no make or no clang.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

# 5001 loads and 5000 stores, if locals are in registers.
LOADS, STORES = 5001, 5000
KERNEL = r"""
#include "kernel.h"
static volatile long row[500];
static volatile int cell;
__attribute__((noinline)) int kernel(int n) {
    for (int i = 0; i < 10; ++i)
        for (int k = 0; k < 500; ++k) cell = (int)row[k] + n;
    return cell;
}
"""
FILES = {
    "kernel.h": """#ifdef __cplusplus
extern "C" {
#endif
int kernel(int n);
int shared_kernel(int n);
#ifdef __cplusplus
}
#endif
""",
    "kernel.c": KERNEL,
    "shared.c": KERNEL.replace("int kernel", "int shared_kernel"),
    "assembled.S": """.globl from_assembler
.type from_assembler,@function
from_assembler:
    mov $5, %eax
    ret
.section .note.GNU-stack,"",@progbits
""",
    "main.c": r"""
#include <stdio.h>
#include "kernel.h"
int from_assembler(void);
int main(void) {
    printf("%d %d %d\n", kernel(3), shared_kernel(4), from_assembler());
    return 0;
}
""",
    "all.hpp": "#pragma once\n#include <stdexcept>\n#include <string>\n#include <vector>\n",
    "main.cpp": r"""
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>
#include "kernel.h"
namespace {
int checked(std::span<const int> all, std::size_t at) {
    if (at >= all.size()) throw std::out_of_range(std::to_string(at));
    return all[at];
}
}  // namespace
int main() {
    const std::vector<int> all{kernel(1), shared_kernel(2), 7};
    int sum = 0, thrown = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        try {
            sum += checked(all, i);
        } catch (const std::exception& error) {
            thrown += error.what()[0];
        }
    }
    std::printf("%d %d\n", sum, thrown);
    return 0;
}
""",
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.16)
project(built LANGUAGES C CXX ASM)
include(CheckCSourceCompiles)
include(CheckCXXSourceRuns)
include(CheckFunctionExists)
include(CheckTypeSize)
include(CheckIncludeFile)
include(CheckIPOSupported)
check_c_source_compiles("int main(void) { return 0; }" HAS_MAIN)
check_c_source_compiles("int main(void) { return not_there; }" HAS_NOTHING)
check_cxx_source_runs("#include <string>\\nint main() { return std::string().size(); }" RUNS)
check_function_exists(printf HAS_PRINTF)
check_function_exists(there_is_no_such_function HAS_NO_FUNCTION)
check_type_size(long SIZE_OF_LONG)
check_include_file(stdio.h HAS_STDIO)
if(NOT HAS_MAIN OR HAS_NOTHING OR NOT RUNS OR NOT HAS_PRINTF OR HAS_NO_FUNCTION OR
   NOT SIZE_OF_LONG EQUAL 8 OR NOT HAS_STDIO)
    message(FATAL_ERROR "a check is wrong")
endif()
set(CMAKE_CXX_STANDARD 20)
add_library(kernel STATIC kernel.c)
add_library(shared_kernel SHARED shared.c)
target_link_options(shared_kernel PRIVATE -Wl,--no-undefined)
add_executable(in_c main.c assembled.S)
target_link_libraries(in_c PRIVATE kernel shared_kernel)
add_executable(in_cxx main.cpp)
target_precompile_headers(in_cxx PRIVATE all.hpp)
target_link_libraries(in_cxx PRIVATE kernel shared_kernel)
""",
    # What scripts that autoconf and libtool make run, and how they look at it.
    "configure": r"""#!/bin/sh
say() { echo "checking $1... $2"; }
fail() { echo "configure: error: $1" >&2; exit 1; }
for arg; do
    case $arg in
        CC=*) CC=${arg#CC=} ;;
        CXX=*) CXX=${arg#CXX=} ;;
        CFLAGS=*) CFLAGS=${arg#CFLAGS=} ;;
    esac
done
set -e
here=`dirname "$0"`
echo 'int main (void) { return 0; }' > conftest.c
for option in --version -v; do
    $CC $option > conftest.out 2>&1 || fail "$option"
    grep clang conftest.out > /dev/null || fail "$option does not say clang"
done
if $CC -V > /dev/null 2>&1; then fail "-V is accepted"; fi
if $CC -qversion > /dev/null 2>&1; then fail "-qversion is accepted"; fi
rm -f a.out
$CC $CFLAGS conftest.c && test -f a.out || fail "C compiler cannot create executables"
./a.out || fail "cannot run C compiled programs"
$CC -o conftest $CFLAGS conftest.c && ./conftest
$CC -c $CFLAGS conftest.c && test -f conftest.o || fail "no suffix of object files"
test -z "`$CC -c $CFLAGS conftest.c 2>&1`" || fail "the compiler warns of nothing"
$CC -E $CFLAGS conftest.c | grep 'int main' > /dev/null || fail "how to run the preprocessor"
echo '#include <there_is_none.h>' > conftest2.c
if $CC -E conftest2.c > /dev/null 2>&1; then fail "the preprocessor finds everything"; fi
$CC -MT conftest.o -MD -MP -MF conftest.Po -c -o conftest.o conftest.c
say "for dependency style" "`grep conftest.c conftest.Po`"
$CC -M conftest.c | grep conftest.c > /dev/null || fail "-M"
$CC -MM conftest.c | grep conftest.c > /dev/null || fail "-MM"
for name in -print-prog-name=ld -print-search-dirs -print-libgcc-file-name -dumpmachine \
    -dumpversion -print-file-name=libc.so -print-multi-directory; do
    test -n "`$CC $name`" || fail "$name"
done
$CC $CFLAGS -c conftest.c -o conftest_c_o.o && test -f conftest_c_o.o || fail "-c with -o"
printf 'int first;' > one.c; printf 'int second;' > two.c
$CC $CFLAGS -c one.c two.c && test -f one.o && test -f two.o || fail "-c of several files"
$CC -r -nostdlib -o both.o one.o two.o || fail "a linker script that joins objects"
nm both.o | grep second > /dev/null || fail "-r lost a symbol"
nm both.o | grep __trace_ring_load > /dev/null && fail "-r links what only programs have"
$CC $CFLAGS -x c - -o from_input < conftest.c && ./from_input || fail "-x c -"
$CC $CFLAGS -xc - -o from_input < conftest.c && ./from_input || fail "-xc -"
$CC $CFLAGS -xc conftest.c -o from_input && ./from_input || fail "-xc"
echo "-o from_file \"conftest.c\"" > arguments
$CC $CFLAGS @arguments && ./from_file || fail "@file"
$CC -c $CFLAGS "$here/assembled.S" -o assembled.o || fail ".S"
$CC -S $CFLAGS conftest.c -o conftest.s && $CC -c conftest.s -o conftest.o || fail ".s"
$CC $CFLAGS -o conftest conftest.c -static && ./conftest || fail "-static"
$CC $CFLAGS -o conftest conftest.c -Wl,--as-needed -Wl,--gc-sections && ./conftest
cp "$here/all.hpp" . && $CXX all.hpp -o all.hpp.gch || fail "headers are not precompiled"
$CXX -x c++-header all.hpp -o all.pch || fail "headers are not precompiled with -x"
echo 'int main() { return std::vector<int>(3).size() - 3; }' > conftest3.cpp
$CXX -include-pch all.pch conftest3.cpp -o conftest && ./conftest || fail "-include-pch"
for defs in -Wl,-z,defs "-Wl,-z -Wl,defs" "-Xlinker --no-undefined" -Wl,-no-undefined "-z defs"; do
    $CC $CFLAGS -fPIC -DPIC -shared "$here/shared.c" $defs -Wl,-soname -Wl,lib.so.1 -o lib.so.1 ||
        fail "a library with $defs"
done
echo "-fPIC -shared $here/shared.c -o lib.so.2" > arguments; $CC $CFLAGS @arguments
$CC $CFLAGS -fPIC --shared "$here/shared.c" -o lib.so.3
for name in 1 2 3; do
    if nm -D --defined-only lib.so.$name | grep __trace_ring > /dev/null; then
        fail "lib.so.$name has hooks of its own"
    fi
done
cat > Makefile <<END
in_c: main.o kernel.o assembled.o libshared_kernel.so
	$CC $CFLAGS -o in_c main.o kernel.o assembled.o -L. -lshared_kernel -Wl,-rpath,\$(CURDIR)
in_cxx: main_cxx.o libkernel.a libshared_kernel.so
	$CXX $CFLAGS -o in_cxx main_cxx.o -L. -lkernel -lshared_kernel -Wl,-rpath -Wl,\$(CURDIR)
all: in_c in_cxx
libshared_kernel.so: shared.lo
	$CC -shared -fPIC -DPIC shared.lo $CFLAGS -Wl,-soname -Wl,libshared_kernel.so -o \$@
shared.lo: $here/shared.c
	$CC $CFLAGS -c $here/shared.c -fPIC -DPIC -o \$@
libkernel.a: kernel.o
	ar cr \$@ kernel.o && ranlib \$@
main_cxx.o: $here/main.cpp
	$CXX $CFLAGS -std=c++20 -c $here/main.cpp -o \$@
assembled.o: $here/assembled.S
	$CC $CFLAGS -c $here/assembled.S -o \$@
%.o: $here/%.c
	$CC $CFLAGS -MD -MP -MF \$*.d -c \$< -o \$@
END
""",
}
FLAGS = ["-O2", "-O0", "-O1", "-O3 -fPIC", "-O2 -flto", "-O2 -flto=thin"]


def run(command, folder, may_fail=False):
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0 and not may_fail:
        sys.exit(f"in {folder}: {' '.join(command)}: status {done.returncode}\n"
                 f"{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done


def by_cmake(asked, flags, cc, cxx, source, folder):
    run([asked.cmake, "-S", source, "-B", folder, "-G", "Unix Makefiles",
         f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}", f"-DCMAKE_ASM_COMPILER={cc}",
         f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}",
         *(["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld", "-DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld",
            f"-DCMAKE_AR={shutil.which('llvm-ar-14') or shutil.which('llvm-ar')}"]
           if "lto" in flags else [])], source)
    run([asked.cmake, "--build", folder], source)


def by_configure(_, flags, cc, cxx, source, folder):
    os.makedirs(folder)
    run(["sh", os.path.join(source, "configure"), f"CC={cc.replace(';', ' ')}",
         f"CXX={cxx.replace(';', ' ')}", f"CFLAGS={flags}"], folder)
    run(["make", "all"], folder)


def check(asked, how, flags, clang, folder):
    """Builds the project, and compares what its programs do with those that clang compiles."""
    source, traced = os.path.join(folder, "source"), os.path.join(folder, "traced")
    how(asked, flags, asked.address_trace + ";cc", asked.address_trace + ";c++", source, traced)
    faults = []
    run([clang, "-c", "kernel.c", "shared.c", "assembled.S"], source)
    for name, main_source in (("in_c", "main.c"), ("in_cxx", "main.cpp")):
        run([*([clang] if name == "in_c" else [clang.replace("clang", "clang++"), "-std=c++20"]),
             main_source, "kernel.o", "shared.o", "assembled.o", "-o", name], source)
        wanted = run([os.path.join(source, name)], source).stdout
        report = os.path.join(folder, "report.csv")
        done = run([asked.address_trace, "run", "--format", "csv", "--report", report, "--",
                    os.path.join(traced, name)], traced)
        with open(report, encoding="utf-8") as file:
            text = file.read()
        for kernel in ("kernel", "shared_kernel"):
            found = re.search(rf"^{kernel},[^,]*,1,\d+,(\d+),(\d+),", text, re.M)
            counts = [int(each) for each in found.groups()] if found else [0, 0]
            if counts[0] < LOADS or counts[1] < STORES or \
                    ("-O0" not in flags and counts != [LOADS, STORES]):
                faults.append(f"{kernel} of {name} has {counts} loads and stores instead of "
                              f"{[LOADS, STORES]}: {text}")
        if done.stdout != wanted:
            faults.append(f"{name} prints {done.stdout!r} instead of {wanted!r}")
        if not re.search(r"^gaps +none$", done.stderr, re.M):
            faults.append(f"{name} has gaps: {done.stderr}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--address-trace", required=True)
    parser.add_argument("--cmake", default="cmake")
    asked = parser.parse_args()
    clang = next((each for each in ("clang-14", "clang") if shutil.which(each)), "")
    if not clang or not shutil.which("make"):
        print("address_builds.py: there is no clang or no make here", file=sys.stderr)
        return 77
    failed, is_quick = False, "TRACE_RING_QUICK" in os.environ
    for flags in FLAGS[:1] if is_quick else FLAGS:
        if "lto" in flags and not shutil.which("ld.lld"):
            continue
        for how in (by_configure,) if is_quick else (by_cmake, by_configure):
            # Makefile and script have no word for another linker.
            if "lto" in flags and how is by_configure:
                continue
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "source"))
                for name, text in FILES.items():
                    with open(os.path.join(folder, "source", name), "w", encoding="utf-8") as file:
                        file.write(text)
                faults = check(asked, how, flags, clang, folder)
            for fault in faults:
                print(f"{how.__name__}, {flags}: {fault}")
            failed |= bool(faults)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
