#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Layouts of C structures by point/, beside those of the compiler for 32 and 64 bits.

    layouts.py [--random N] -- COMPILER [FLAG...]

The machine's own structures (REAL), mirrored as C++ types and computed by point/layout.hpp; and N
random ones with bit-fields, arrays, unions and nested structures, computed. A C program built by gcc
with -m32 and with -m64 says where each member is. Exits with 77 where gcc cannot build for 32 bits, or
the kernel cannot run the result.
"""
import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

# type: its C name, its c_type (none: one of a fixed size), the C++ type of a mirror
TYPES = {
    "char": ("char", "character", "char"),
    "uchar": ("unsigned char", "character", "unsigned char"),
    "short": ("short", "short_integer", "std::int16_t"),
    "ushort": ("unsigned short", "short_integer", "std::uint16_t"),
    "int": ("int", "integer", "std::int32_t"),
    "uint": ("unsigned", "integer", "std::uint32_t"),
    "long": ("long", "long_integer", "typename C::long_type"),
    "ulong": ("unsigned long", "long_integer", "typename C::ulong_type"),
    "llong": ("long long", "long_long_integer", "typename C::long_long_type"),
    "ullong": ("unsigned long long", "long_long_integer", "typename C::ulong_long_type"),
    "float": ("float", "single_float", "float"),
    "double": ("double", "double_float", "typename C::double_type"),
    "ldouble": ("long double", "long_double_float", None),
    "bool": ("_Bool", "boolean", "bool"),
    "ptr": ("void *", "pointer", "typename C::template pointer<void>"),
}
INTEGERS = ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "llong", "ullong"]

# header, C name, members: "type name", "type name[count]", "type name:bits"; a name of this table may
# be a type. A count of words of a long is written /long.
REAL = [
    ("time.h", "struct timespec", "long tv_sec, long tv_nsec"),
    ("sys/time.h", "struct timeval", "long tv_sec, long tv_usec"),
    ("sys/time.h", "struct itimerval", "timeval it_interval, timeval it_value"),
    ("time.h", "struct itimerspec", "timespec it_interval, timespec it_value"),
    ("time.h", "struct tm", "int tm_sec, int tm_min, int tm_hour, int tm_mday, int tm_mon, int tm_year, "
     "int tm_wday, int tm_yday, int tm_isdst, long tm_gmtoff, ptr tm_zone"),
    ("signal.h", "struct sigaction", "ptr sa_handler, ulong sa_mask[1024/long], int sa_flags, "
     "ptr sa_restorer"),
    ("signal.h", "stack_t", "ptr ss_sp, int ss_flags, ulong ss_size"),
    ("sys/uio.h", "struct iovec", "ptr iov_base, ulong iov_len"),
    ("sys/socket.h", "struct msghdr", "ptr msg_name, uint msg_namelen, ptr msg_iov, ulong msg_iovlen, "
     "ptr msg_control, ulong msg_controllen, int msg_flags"),
    ("sys/socket.h", "struct mmsghdr", "msghdr msg_hdr, uint msg_len"),
    ("sys/socket.h", "struct linger", "int l_onoff, int l_linger"),
    ("netinet/in.h", "struct sockaddr_in", "ushort sin_family, ushort sin_port, uint sin_addr, "
     "uchar sin_zero[8]"),
    ("netinet/in.h", "struct sockaddr_in6", "ushort sin6_family, ushort sin6_port, uint sin6_flowinfo, "
     "uchar sin6_addr[16], uint sin6_scope_id"),
    ("sys/un.h", "struct sockaddr_un", "ushort sun_family, char sun_path[108]"),
    ("netdb.h", "struct addrinfo", "int ai_flags, int ai_family, int ai_socktype, int ai_protocol, "
     "uint ai_addrlen, ptr ai_addr, ptr ai_canonname, ptr ai_next"),
    ("netdb.h", "struct hostent", "ptr h_name, ptr h_aliases, int h_addrtype, int h_length, "
     "ptr h_addr_list"),
    ("netdb.h", "struct servent", "ptr s_name, ptr s_aliases, int s_port, ptr s_proto"),
    ("poll.h", "struct pollfd", "int fd, short events, short revents"),
    ("dirent.h", "struct dirent", "ulong d_ino, long d_off, ushort d_reclen, uchar d_type, char d_name[256]"),
    ("fcntl.h", "struct flock", "short l_type, short l_whence, long l_start, long l_len, int l_pid"),
    ("sys/resource.h", "struct rlimit", "ulong rlim_cur, ulong rlim_max"),
    ("sys/resource.h", "struct rusage", "timeval ru_utime, timeval ru_stime, long ru_maxrss, long ru_ixrss, "
     "long ru_idrss, long ru_isrss, long ru_minflt, long ru_majflt, long ru_nswap, long ru_inblock, "
     "long ru_oublock, long ru_msgsnd, long ru_msgrcv, long ru_nsignals, long ru_nvcsw, long ru_nivcsw"),
    ("sys/times.h", "struct tms", "long tms_utime, long tms_stime, long tms_cutime, long tms_cstime"),
    ("sys/utsname.h", "struct utsname", "char sysname[65], char nodename[65], char release[65], "
     "char version[65], char machine[65], char domainname[65]"),
    ("pwd.h", "struct passwd", "ptr pw_name, ptr pw_passwd, uint pw_uid, uint pw_gid, ptr pw_gecos, "
     "ptr pw_dir, ptr pw_shell"),
    ("grp.h", "struct group", "ptr gr_name, ptr gr_passwd, uint gr_gid, ptr gr_mem"),
    ("termios.h", "struct termios", "uint c_iflag, uint c_oflag, uint c_cflag, uint c_lflag, uchar c_line, "
     "uchar c_cc[32], uint c_ispeed, uint c_ospeed"),
    ("getopt.h", "struct option", "ptr name, int has_arg, ptr flag, int val"),
    ("glob.h", "glob_t", "ulong gl_pathc, ptr gl_pathv, ulong gl_offs, int gl_flags, ptr gl_closedir, "
     "ptr gl_readdir, ptr gl_opendir, ptr gl_lstat, ptr gl_stat"),
    ("stdlib.h", "lldiv_t", "llong quot, llong rem"),
    ("stdlib.h", "ldiv_t", "long quot, long rem"),
    ("sys/timex.h", "struct ntptimeval", "timeval time, long maxerror, long esterror, "
     "long tai, long __glibc_reserved1, long __glibc_reserved2, long __glibc_reserved3, "
     "long __glibc_reserved4"),
    ("sys/sem.h", "struct sembuf", "ushort sem_num, short sem_op, short sem_flg"),
    ("utime.h", "struct utimbuf", "long actime, long modtime"),
    ("link.h", "struct dl_phdr_info", "ptr dlpi_addr, ptr dlpi_name, ptr dlpi_phdr, ushort dlpi_phnum, "
     "ullong dlpi_adds, ullong dlpi_subs, ulong dlpi_tls_modid, ptr dlpi_tls_data"),
    ("linux/aio_abi.h", "struct io_event", "ullong data, ullong obj, llong res, llong res2"),
    ("netinet/ip.h", "struct iphdr", "uint ihl:4, uint version:4, uchar tos, ushort tot_len, ushort id, "
     "ushort frag_off, uchar ttl, uchar protocol, ushort check, uint saddr, uint daddr"),
    ("netinet/ip_icmp.h", "struct icmphdr", "uchar type, uchar code, ushort checksum, uint un"),
    ("sys/select.h", "fd_set", "long fds_bits[1024/long]"),
]


class Member:
    def __init__(self, kind, name, count=None, bits=None):
        self.kind, self.name, self.count, self.bits = kind, name, count, bits


class Struct:
    def __init__(self, name, members, union=False, header=None, c_name=None):
        self.name, self.members, self.union = name, members, union
        self.header, self.c_name = header, c_name or f"{'union' if union else 'struct'} {name}"


def parsed(text):
    members = []
    for part in text.split(", "):
        kind, name = part.rsplit(" ", 1)
        count = bits = None
        if "[" in name:
            name, count = name[:-1].split("[")
        elif ":" in name:
            name, bits = name.split(":")
            bits = int(bits)
        members.append(Member(kind, name, count, bits))
    return members


def real_structs():
    return [Struct(c_name.replace("struct ", ""), parsed(members), header=header, c_name=c_name)
            for header, c_name, members in REAL]


def random_structs(count, rng):
    made = []
    for number in range(count):
        union = rng.random() < 0.15
        members = []
        for place in range(rng.randint(1, 9)):
            name, chance = f"m{place}", rng.random()
            if chance < 0.45:
                kind = rng.choice(INTEGERS + ["bool"])
                width = {"bool": 1, "char": 8, "uchar": 8, "short": 16, "ushort": 16, "llong": 64,
                         "ullong": 64}.get(kind, 32)
                if not union and rng.random() < 0.1:
                    members.append(Member(kind, "", bits=0))
                members.append(Member(kind, name, bits=rng.randint(1, width)))
            elif chance < 0.55 and made:
                members.append(Member(rng.choice(made[-20:]).name, name))
            else:
                many = rng.randint(1, 3) if rng.random() < 0.2 else None
                members.append(Member(rng.choice(list(TYPES)), name, many))
        made.append(Struct(f"r{number}", members, union))
    return made


def c_program(structs):
    lines = ["#define _GNU_SOURCE", "#include <stddef.h>", "#include <stdio.h>", "#include <string.h>"]
    lines += sorted({f"#include <{s.header}>" for s in structs if s.header})
    for s in structs:
        if s.header:
            continue
        lines.append(f"{s.c_name} {{")
        for m in s.members:
            kind = TYPES[m.kind][0] if m.kind in TYPES else next(o.c_name for o in structs if o.name == m.kind)
            more = f"[{m.count}]" if m.count else f" : {m.bits}" if m.bits is not None else ""
            lines.append(f"    {kind} {m.name}{more};")
        lines.append("};")
    lines.append("""
static void bits(const char *what, const unsigned char *at, size_t size) {
    long first = -1, count = 0;
    for (size_t i = 0; i < size * 8; ++i)
        if (at[i / 8] >> i % 8 & 1) { if (first < 0) first = (long)i; ++count; }
    printf("%s bit %ld %ld\\n", what, first, count);
}""")
    for s in structs:
        lines.append(f"static void of_{s.name}(void) {{")
        lines.append(f'    printf("{s.name} %zu %zu\\n", sizeof({s.c_name}), _Alignof({s.c_name}));')
        for m in s.members:
            what, name = f"{s.name}.{m.name}", m.name
            if m.bits == 0:
                continue
            if m.bits:
                lines.append(f"    {{ {s.c_name} v; memset(&v, 0, sizeof v); v.{name} = -1; "
                             f'bits("{what}", (const unsigned char *)&v, sizeof v); }}')
            else:
                lines.append(f'    printf("{what} %zu\\n", offsetof({s.c_name}, {name}));')
        lines.append("}")
    lines.append("int main(void) {")
    lines += [f"    of_{s.name}();" for s in structs]
    lines.append("    return 0;\n}")
    return "\n".join(lines) + "\n"


def cpp_program(structs):
    """Prints the same lines for both modes: computed, and, of real ones, mirrored."""
    lines = ["""#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <trace_ring/point/c_types.hpp>
#include <trace_ring/point/layout.hpp>
namespace point = trace_ring::point;
namespace record = trace_ring::record;
using record::program_mode;
static std::map<std::string, point::extent> known;
static unsigned long long ull(std::uint64_t v) { return v; }
template <class T> static T sure(const std::optional<T>& of) { if (!of) std::abort(); return *of; }
static void bits(const char* what, const point::bit_field& at) {
    std::printf("%s bit %llu %u\\n", what, ull(at.offset * 8 + at.first_bit), unsigned{at.width});
}
"""]
    for s in structs:
        if s.header:
            lines.append(f"template <record::data_model M, class C = point::c_types<M>> struct {s.name}_of {{")
            for m in s.members:
                count = f"[{m.count.replace('/long', ' / (8 * sizeof(typename C::long_type))')}]" if m.count else ""
                kind = TYPES[m.kind][2] if m.kind in TYPES else f"{m.kind}_of<M>"
                lines.append(f"    {kind} {m.name}{count}{f' : {m.bits}' if m.bits else ''};")
            lines.append("};")
        lines.append(f"static void compute_{s.name}(program_mode mode) {{")
        lines.append(f"    point::layout of(point::layout::{'union_of_all' if s.union else 'structure'});")
        for m in s.members:
            what = f"{s.name}.{m.name}"
            kind = (f"point::extent_of(point::c_type::{TYPES[m.kind][1]}, mode)" if m.kind in TYPES
                    else f'known["{m.kind}"]')
            if m.bits == 0:
                lines.append(f"    sure(of.add_bits({kind}, 0));")
            elif m.bits:
                lines.append(f'    bits("{what}", sure(of.add_bits({kind}, {m.bits})));')
            else:
                count = str(m.count or 1).replace("/long", " / (mode == program_mode::lp64 ? 64 : 32)")
                lines.append(f'    std::printf("{what} %llu\\n", ull(sure(of.add({kind}, {count}))));')
        lines.append(f'    known["{s.name}"] = of.whole();')
        lines.append(f'    std::printf("{s.name} %llu %llu\\n", ull(of.whole().bytes), ull(of.whole().alignment));')
        lines.append("}")
    lines.append("template <class M> static void mirrored() {")
    for s in structs:
        if not s.header:
            continue
        lines.append(f'    std::printf("{s.name} %zu %zu\\n", sizeof({s.name}_of<M>), alignof({s.name}_of<M>));')
        for m in s.members:
            if not m.bits:
                lines.append(f"    {{ using S = {s.name}_of<M>; "
                             f'std::printf("{s.name}.{m.name} %zu\\n", offsetof(S, {m.name})); }}')
    lines.append("}\nint main(int, char** argv) {\n    const std::string what = argv[1];")
    for bits, mode in ((32, "ilp32"), (64, "lp64")):
        lines.append(f'    if (what == "mirrored{bits}") mirrored<record::{mode}>();')
        lines.append(f'    if (what == "computed{bits}") {{')
        lines += [f"        compute_{s.name}(program_mode::{mode});" for s in structs]
        lines.append("    }")
    lines.append("}")
    return "\n".join(lines) + "\n"


def output(*command):
    return sorted(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())


def main(arguments):
    count = 300
    if arguments[:1] == ["--random"]:
        count, arguments = int(arguments[1]), arguments[2:]
    if len(arguments) < 2 or arguments[0] != "--":
        sys.exit(__doc__.strip())
    compiler = arguments[1:]
    if not shutil.which("gcc") or "aarch64" in compiler[0]:
        print("no gcc for this machine's programs is here")
        return 77
    structs = real_structs() + random_structs(count, random.Random(28))
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        c_file, cpp_file = os.path.join(folder, "said.c"), os.path.join(folder, "ours.cpp")
        said, ours = os.path.join(folder, "said"), os.path.join(folder, "ours")
        with open(c_file, "w", encoding="utf-8") as file:
            file.write(c_program(structs))
        with open(cpp_file, "w", encoding="utf-8") as file:
            file.write(cpp_program(structs))
        subprocess.run([*compiler, "-O0", "-Wno-invalid-offsetof", cpp_file, "-o", ours], check=True)
        compared = 0
        skipped = None
        for bits in ("32", "64"):
            built = subprocess.run(["gcc", f"-m{bits}", "-w", "-idirafter", "/usr/include/x86_64-linux-gnu",
                                    c_file, "-o", said], capture_output=True, text=True)
            if built.returncode != 0:
                print(f"gcc -m{bits} cannot build here: {built.stderr[:300]}")
                return 77
            try:
                expected = output(said)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                skipped = f"this kernel runs no programs of {bits} bits"
                continue
            for how in ("computed", "mirrored"):
                # Bit-fields of mirrors, and random structures, are only computed.
                real = {s.name for s in structs if s.header}
                wanted = [line for line in expected if how == "computed" or
                          (line.split(".")[0].split(" ")[0] in real and " bit " not in line)]
                found = output(ours, how + bits)
                compared += len(wanted)
                faults += [f"{how} for {bits} bits: {line}, and gcc says otherwise"
                           for line in found if line not in wanted]
                if len(found) != len(wanted):
                    faults.append(f"{how} for {bits} bits: {len(found)} lines, not {len(wanted)}")
    print(f"{compared} places and sizes of {len(REAL)} real and {count} random structures, "
          f"{len(faults)} faults")
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    if faults or compared < (500 if skipped else 1000):
        return 1
    if skipped:
        print(skipped)
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
