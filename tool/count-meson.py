#!/usr/bin/python3
"""Counts the test functions of the last `meson test` of a build folder: `count-meson.py BUILD`. Prints a line for each
program, what a failed one said, and `N passed, N failed`."""

import json
import os
import re
import sys


def main():
    passed = failed = skipped = 0
    said = []
    path = os.path.join(sys.argv[1], "meson-logs", "testlog.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                test = json.loads(line)
                text = test.get("stdout", "") + test.get("stderr", "")
                ok = len(re.findall(r"^\s*ok \d+ - (?!.*# SKIP)", text, re.M))
                bad = len(re.findall(r"^\s*not ok ", text, re.M))
                left = len(re.findall(r"^\s*(?:not )?ok \d+ - .*# SKIP", text, re.M))
                if test["result"] == "SKIP" and not left:
                    left = 1
                elif test["result"] not in ("OK", "SKIP"):
                    bad = max(bad, 1)
                    said.append(f"=== {test['name']}: {test['result']}\n{text[-6000:]}")
                elif ok + left == 0:
                    ok = 1
                passed, failed, skipped = passed + ok, failed + bad, skipped + left
                print(f"{'ok    ' if not bad else 'FAILED'} {test['name'].split(' ')[-1]} ({ok} of {ok + bad + left},"
                      f" {test['duration']:.1f} s)")
    print("\n".join(said))
    if passed + failed == 0:
        print("no test of this build ran")
        failed = 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
