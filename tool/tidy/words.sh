#!/bin/sh
# No word that marks what is not done, and no path of somebody's machine. (Built here from pieces, so that this file
# passes.)
set -eu
marks='TO''DO|FIX''ME|X''XX|HA''CK'
paths='/home/[a-z]+/|/ro''ot/'
found=$(find . \( -path ./.git -o -name node_modules -o -name 'build*' -o -name __pycache__ \) -prune -o \
	-type f \( -name '*.[ch]' -o -name '*.py' -o -name '*.sh' -o -name '*.md' -o -name '*.js' -o -name '*.go' -o \
	-name '*.php' -o -name '*.conf' -o -name meson.build -o -name Makefile -o -path './.ci/*' \) -print0 |
	xargs -0 grep -nIE "\\b($marks)\\b|$paths" || true)
[ -z "$found" ] || { echo "$found"; exit 1; }
