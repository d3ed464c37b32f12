#!/bin/sh
# The public header compiles alone, as C11 and as C++17, with every warning an error.
set -eu
header=include/herdgate.h
warnings="-Wall -Wextra -Wpedantic -Werror"
${CC:-gcc} -std=c11 $warnings -Wstrict-prototypes -fsyntax-only -x c "$header"
g++ -std=c++17 $warnings -fsyntax-only -x c++ "$header"
found=$(sed -n 's/^#include <\(.*\)>.*/\1/p; s/^#include "\(.*\)".*/\1/p' "$header" |
	grep -vxE 'stdbool.h|stddef.h|stdint.h|stdarg.h' || true)
[ -z "$found" ] || { echo "$header: includes more than the C library's types: $found"; exit 1; }
