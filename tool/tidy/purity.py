#!/usr/bin/python3
"""Reads the symbols of the pure rings' archives: what they take from outside must be on a short list (no clock, socket,
file, thread or environment), and they may hold no writable data. `purity.py [BUILD]`, the build folder."""

import os
import re
import subprocess
import sys

RINGS = ["base", "wire", "engine", "admit"]
ALLOWED = re.compile(r"""^(
    mem\w+|str(n?len|n?cpy|n?cmp|n?casecmp|chr|rchr|nchr|str|spn|cspn|pbrk|toll?|toull?|tod)|__mem\w+_chk
    |__isoc99_strto\w+
    |__strto\w+_internal|__ctype_\w+_loc|tolower|toupper
    |v?snprintf|__v?snprintf_chk|malloc|calloc|realloc|free|aligned_alloc|abort|qsort|bsearch
    |log|log2|log1p|exp|exp2|expm1|pow|sqrt|floor|ceil|fmod|l?l?round|trunc|frexp|ldexp|fmin|fmax|isnan|__isnan|__isinf
    |__assert_fail|__errno_location|__stack_chk_fail|__fortify_fail|_GLOBAL_OFFSET_TABLE_|__popcountdi2
    |XXH\w+|__(asan|ubsan|tsan|sanitizer|gcov)_\w+|_ITM_\w+
    )$""", re.X)
# Writable in the file only until the loader has relocated it.
READ_ONLY = re.compile(r"^\.(rodata|data\.rel\.ro|text|init_array|fini_array|eh_frame|note|debug|comment)")
WRITABLE = re.compile(r"^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)")
OURS = re.compile(r"^(LC|__(asan|ubsan|tsan|gcov|odr_asan)|_ubsan|\.L)")


def symbols(archive):
    """(object, section, size, name) for each line of the symbol tables."""
    text = subprocess.run(["objdump", "-t", archive], check=True, capture_output=True, text=True).stdout
    current = ""
    for line in text.splitlines():
        if ": " in line and "file format" in line:
            current = line.split(":")[0]
        found = re.match(r"^[0-9a-f]+ .{7} (\S+)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
        if found:
            yield current, found.group(1), int(found.group(2), 16), found.group(3)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    archives = [path for path in (os.path.join(build, "src", ring, f"lib{ring}.a") for ring in RINGS)
                if os.path.exists(path)]
    if not archives:
        print(f"no archive of a pure ring under {build}: make build")
        return 77
    defined, wanted, faults = set(), [], []
    for archive in archives:
        for unit, section, size, name in symbols(archive):
            if section == "*UND*":
                wanted.append((unit, name))
            else:
                defined.add(name)
                if WRITABLE.match(section) and not READ_ONLY.match(section) and size > 0 and not OURS.match(name):
                    faults.append(f"{unit}: {name} is writable ({section}, {size} bytes)")
    for unit, name in wanted:
        if name not in defined and not ALLOWED.match(name):
            faults.append(f"{unit}: {name} comes from outside; a pure ring may not use it")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
