#!/usr/bin/python3
"""Lengths that make a reader's life bearable: a .c file has at most 800 lines, a function at most 70, a line at most
120 columns, a folder's README.md at most 30 lines, and every folder with code has one."""

import os
import sys

FILE_LINES, FUNCTION_LINES, COLUMNS, README_LINES = 800, 70, 120, 30
TREES = ["src", "include", "test", "tool", "bench", "example"]
TAB = 8


def functions(lines):
    """(first line, length) of each function: from the opening to the closing brace at the margin, as the format of this
    project has them."""
    begin = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            begin = number
        elif line.startswith("}") and begin is not None:
            if line.strip() == "}":
                yield begin, number - begin + 1
            begin = None


def faults_of_file(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    if path.endswith(".c") and len(lines) - 1 > FILE_LINES:
        yield f"{path}: {len(lines) - 1} lines, more than {FILE_LINES}: this is more than one noun"
    for number, line in enumerate(lines, 1):
        if len(line.expandtabs(TAB)) > COLUMNS:
            yield f"{path}:{number}: {len(line.expandtabs(TAB))} columns, more than {COLUMNS}"
    if path.endswith((".c", ".h")):
        for begin, length in functions(lines):
            if length > FUNCTION_LINES:
                yield f"{path}:{begin}: a function of {length} lines, more than {FUNCTION_LINES}"


def faults_of_folder(folder, names):
    readme = os.path.join(folder, "README.md")
    if "README.md" in names:
        with open(readme, encoding="utf-8") as file:
            count = len(file.read().splitlines())
        if count > README_LINES:
            yield f"{readme}: {count} lines, more than {README_LINES}"
    elif any(name.endswith((".c", ".py", ".sh", ".js", ".go", ".php")) for name in names):
        yield f"{folder}: has code but no README.md"


def main():
    faults = []
    for tree in TREES:
        for folder, folders, names in os.walk(tree):
            folders[:] = sorted(name for name in folders if name not in ("node_modules", "__pycache__", "corpus"))
            faults += faults_of_folder(folder, names)
            for name in sorted(names):
                if name.endswith((".c", ".h", ".py", ".sh", ".js", ".go", ".php")):
                    faults += faults_of_file(os.path.join(folder, name))
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
