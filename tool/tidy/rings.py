#!/usr/bin/python3
"""Reads every #include of src/ against the rings of ARCHITECTURE.md: an arrow may only point inward, and the pure rings
include no header of the C library or the system that has a clock, a socket, a file or a thread in it."""

import os
import re
import sys

# A ring, and the rings it may include from, besides itself and the public header.
PURE = ["base", "wire", "engine", "admit"]
ADAPTERS = ["store", "origin", "loop"]
INWARD = {
    "base": [],
    "wire": ["base"],
    "engine": ["base"],
    "admit": ["base"],
    **{adapter: PURE for adapter in ADAPTERS},
    "config": PURE + ADAPTERS,  # it fills in the settings that the adapters' headers declare
    "lib": PURE + ADAPTERS,
    "serve": PURE + ADAPTERS + ["config"],
    "lab": PURE + ADAPTERS + ["config"],
    "demo": PURE + ADAPTERS + ["config", "serve", "lib"],
    "cli": PURE + ADAPTERS + ["config", "serve", "lib", "lab", "demo"],
}
# stdio.h is here for snprintf alone: tidy/purity.py reads the symbols.
PURE_HEADERS = set("""assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdatomic.h
                      stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h xxhash.h""".split())
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def faults_of(path, ring):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            bracket, name = found.groups()
            where = f"{path}:{number}"
            if bracket == "<":
                if ring in PURE and name not in PURE_HEADERS:
                    yield f"{where}: <{name}> has no place in the pure ring {ring}"
                continue
            target = name.split("/")[0] if "/" in name else ring
            if name == "herdgate.h" or target == ring:
                continue
            if target not in INWARD:
                yield f'{where}: "{name}" is in no ring'
            elif target not in INWARD[ring]:
                yield f'{where}: {ring} may not include from {target} ("{name}")'


def main():
    faults = []
    for ring in sorted(os.listdir("src")):
        folder = os.path.join("src", ring)
        if not os.path.isdir(folder):
            continue
        if ring not in INWARD:
            faults.append(f"{folder}: this ring is not in tool/tidy/rings.py")
            continue
        for root, _, names in os.walk(folder):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    faults += faults_of(os.path.join(root, name), ring)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
