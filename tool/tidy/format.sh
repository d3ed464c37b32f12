#!/bin/sh
# Every C file is as Debian 12's clang-format 14 would write it: `make format` does so.
set -eu
command -v clang-format-14 >/dev/null || { echo "no clang-format-14: tool/install-deps.sh check"; exit 77; }
wrong=0
for file in $(find include src test bench example -name node_modules -prune -o -name '*.[ch]' -print | sort); do
	lines=$(clang-format-14 "$file" | diff "$file" - | grep -c '^[<>]' || true)
	[ "$lines" = 0 ] && continue
	echo "$file: $lines lines differ from what clang-format writes"
	wrong=1
done
exit $wrong
