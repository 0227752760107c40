#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""What include-what-you-use says of the headers, less what it is not asked.

    includes.py ROOT < OUTPUT    prints `file: finding` for each

Each header includes the standard's and the system's headers for all that it names, and no others. The
tool is not followed where it errs, or where this project has another rule; each with its reason below.
"""
import os
import re
import sys

# Where it names a file of the standard library or the kernel in place of the header that offers it.
OFFERED_BY = {
    "bits/chrono.h": "chrono", "bits/local_lim.h": "climits", "bits/utility.h": "utility",
    "bits/mman-map-flags-generic.h": "sys/mman.h", "bits/struct_stat.h": "sys/stat.h",
    "bits/types/idtype_t.h": "sys/wait.h", "bits/types/siginfo_t.h": "signal.h",
    "bits/types/sig_atomic_t.h": "csignal", "bits/types/struct_iovec.h": "sys/uio.h", "bits/types/stack_t.h": "signal.h", "bits/types/struct_tm.h": "ctime", "syscall.h": "sys/syscall.h",
    "elf.h": "link.h", "sys/types.h": "sys/stat.h", "errno.h": "cerrno", "stddef.h": "cstddef",
    "stdio.h": "cstdio",
}
# As good as one another here.
TWINS = {"errno.h": "cerrno", "stdio.h": "cstdio", "stddef.h": "cstddef", "time.h": "ctime",
         "ctime": "time.h", "limits.h": "climits"}
# Never asked for, by the reason.
NOT_ASKED = (
    (r"trace_ring/", "what a header of the library includes, is part of what it offers"),
    (r"boost/", "atomic.hpp alone knows Boost: a test of its own sees to that"),
    (r"ext/alloc_traits\.h|initializer_list|compare", "comes with containers and strings, as the standard says"),
    (r"features\.h", "comes with every header of the system"),
)
# Not asked for when only these are named: offered by <unistd.h>, of <algorithm>, offered by <sys/wait.h>.
NOT_NAMED = re.compile(r"SEEK_\w+|(pop|push)_heap|W(IF|EXIT|STOP|TERM)[A-Z]+")
# Removal is asked for only if no such name is there: the tool does not see what is named in constraints,
# or in templates that nobody instantiates.
NAMES = {
    "algorithm": r"std::(ranges::)?(min|max|copy|fill|sort|find|count|clamp|equal|any_of|all_of|none_of|"
                 r"lower_bound|upper_bound|push_heap|pop_heap|make_heap|move_backward|reverse|rotate|remove)\w*\b",
    "chrono": r"std::chrono", "climits": r"\b[A-Z_]+_(MAX|MIN|BIT|ITERATIONS)\b|CHAR_BIT",
    "concepts": r"std::(same_as|convertible_to|derived_from|\w*integral|floating_point|constructible_from|"
                r"default_initializable|copy_constructible|move_constructible|\w*invocable|predicate|"
                r"copyable|movable|regular|semiregular|destructible|assignable_from|swappable|"
                r"equality_comparable|totally_ordered)\b",
    "cstddef": r"std::(size_t|byte|ptrdiff_t|nullptr_t|max_align_t)\b|\boffsetof\b",
    "cstdint": r"std::u?int(ptr|max|\d+)_t\b", "cstdio": r"std::\w*printf|std::FILE|::rename\b|std::rename",
    "cstring": r"std::(mem|str)\w+\(", "ctime": r"::(clock_\w+|localtime_r|gmtime_r|strftime|nanosleep|time)\b|\btm\b|timespec",
    "fcntl.h": r"\b(O_[A-Z]+|F_[A-Z_]+)\b", "optional": r"std::(optional|nullopt)",
    "signal.h": r"\b(SIG[A-Z]+|stack_t|sig\w+)\b|::(kill|raise)\b",
    "span": r"std::(span|as_bytes|as_writable_bytes)\b", "string": r"std::(string|to_string|getline|char_traits)\b",
    "string_view": r"std::string_view", "sys/mman.h": r"\b(MAP|PROT|MADV|MS)_[A-Z]+|::m(map|unmap|advise|protect)\b",
    "sys/prctl.h": r"\bprctl\b", "sys/random.h": r"\bgetrandom\b", "sys/stat.h": r"\bstat(64)?\b|::fstat|S_IS",
    "sys/syscall.h": r"\bSYS_\w+", "sys/uio.h": r"\biovec\b|::process_vm_\w+",
    "sys/wait.h": r"\bW(IF|EXIT|STOP|TERM|NO)[A-Z]+|::wait(pid|id)\b",
    "type_traits": r"std::(is_\w+|conditional_t|remove_\w+|decay_t|enable_if_t|bool_constant|true_type|"
                   r"false_type|integral_constant|underlying_type_t|common_type_t|make_(un)?signed_t|"
                   r"invoke_result_t|type_identity\w*|has_unique\w+|add_\w+|void_t|conjunction\w*)",
    "unistd.h": r"::(close|read|write|getpid|syscall|sysconf|ftruncate|lseek|dup|fsync|unlink|access|fork|"
                r"readlink|sleep|usleep|gettid|pread|pwrite|link|geteuid|_exit)\b|\bpid_t\b|SEEK_",
    "utility": r"std::(move|forward|exchange|swap|pair|declval|in_place\w*|(make_)?(index|integer)_sequence\w*|as_const|"
               r"cmp_\w+|unreachable|to_underlying)\b",
}

ADVICE = re.compile(r"^(\S+) should (add|remove) these lines:\n((?:.+\n)*)", re.MULTILINE)
LINE = re.compile(r"^(?:- )?#include [<\"]([^>\"]+)[>\"]\s*(?://\s*(?:for|lines) (.*))?$")


def wanted(text, code, name, symbols):
    """What to add to a header of this text: a name, or nothing. The header itself must name one of the
    symbols: what a member function's type or a default argument brings along is not its own."""
    name = OFFERED_BY.get(name, name)
    if any(re.match(pattern, name) for pattern, _ in NOT_ASKED):
        return ""
    named = [symbol for symbol in symbols.split(", ") if not NOT_NAMED.fullmatch(symbol) and
             re.search(r"\b" + re.escape(symbol.removesuffix("...")), code)]
    if symbols and not named:
        return ""
    has = {name, TWINS.get(name, name), *(c for c, cpp in TWINS.items() if cpp == name)}
    return "" if any(f"#include <{each}>" in text for each in has) else name


def findings(output, root):
    """What is asked for, each as `file: finding`, sorted."""
    top = os.path.join(os.path.realpath(root), "include", "trace_ring", "")
    found = set()
    for path, action, lines in ADVICE.findall(output):
        path = os.path.realpath(path)
        if not path.startswith(top):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "namespace" not in text and "<trace_ring/" in text:
            continue  # what programs include: it gathers, and names nothing
        code = re.sub(r"^\s*(//|#\s*include).*$|//.*$", "", text, flags=re.MULTILINE)
        where = os.path.relpath(path, root)
        for name, symbols in (match.groups("") for match in map(LINE.match, lines.splitlines()) if match):
            if action == "add":
                if name := wanted(text, code, name, symbols):
                    found.add(f"{where}: names {symbols or 'it'}, without #include <{name}>")
            elif not name.startswith("trace_ring/") and not re.search(NAMES.get(name, "(?!)"), code):
                found.add(f"{where}: #include <{name}>, for nothing")
    return sorted(found)


def main(arguments):
    found = findings(sys.stdin.read(), arguments[0])
    print("".join(f"{each}\n" for each in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
