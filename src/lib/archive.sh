#!/bin/sh
# archive.sh LD OBJCOPY AR OUTPUT ARCHIVE... - joins the archives into one with a single object, whose hidden names are
# local to it.
set -eu
ld=$1 objcopy=$2 ar=$3 output=$4
shift 4
joined=$(mktemp -d)
trap 'rm -rf "$joined"' EXIT
"$ld" -r --whole-archive "$@" -o "$joined/herdgate.o"
"$objcopy" --localize-hidden "$joined/herdgate.o"
rm -f "$output"
"$ar" crs "$output" "$joined/herdgate.o"
