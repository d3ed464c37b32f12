#!/usr/bin/python3
"""The shared library exports exactly the functions that include/herdgate.h declares with HG_EXPORT, and no data."""

import glob
import os
import re
import subprocess
import sys


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    libraries = [path for path in glob.glob(os.path.join(build, "src", "lib", "libherdgate.so*"))
                 if os.path.isfile(path) and not os.path.islink(path)]
    if not libraries:
        print(f"no libherdgate.so under {build}")
        return 77
    with open("include/herdgate.h", encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*(\\\n[^\n]*)*", "", file.read(), flags=re.S | re.M)
    declared = set(re.findall(r"HG_EXPORT[^;(]*?(\w+)\s*\(", text))
    lines = subprocess.run(["nm", "-D", "--defined-only", libraries[0]], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    exported = {line.split()[-1].split("@")[0]: line.split()[-2] for line in lines}
    faults = [f"{name} is declared with HG_EXPORT but not exported" for name in sorted(declared - set(exported))]
    faults += [f"{name} is exported but not declared in the header" for name in sorted(set(exported) - declared)]
    faults += [f"{name} is data, not a function" for name, kind in sorted(exported.items()) if kind not in "TWi"]
    if not declared:
        faults.append("include/herdgate.h declares no function with HG_EXPORT")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
