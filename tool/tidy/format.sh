#!/bin/sh
# Every C file is as Debian 12's clang-format 14 would write it: `make format` does so.
set -eu
command -v clang-format-14 >/dev/null || { echo "no clang-format-14: tool/install-deps.sh check"; exit 77; }
wrong=$(find include src test bench example -name node_modules -prune -o -name '*.[ch]' -print |
	xargs clang-format-14 --dry-run 2>&1 |
	sed -nE 's/^([^:]*):[0-9]+:[0-9]+: (warning|error): .*/\1/p' | sort | uniq -c)
[ -z "$wrong" ] || { echo "$wrong" | sed 's/$/: places that clang-format would write otherwise/'; exit 1; }
