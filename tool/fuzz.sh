#!/bin/bash
# Builds every fuzzer test/fuzz/*.c with clang's libFuzzer, ASan and UBSan into build-fuzz/, and runs each for so many
# seconds: `fuzz.sh [SECONDS]`. What a run learns is kept in build-fuzz/corpus, seeds are in test/fuzz/corpus/NAME. A
# finding is kept in build-fuzz/found and fails the run.
set -u
cd "$(dirname "$0")/.."
seconds=${1:-60}
folder=build-fuzz
clang=$(command -v clang-14 || command -v clang || true)
if [ -z "$clang" ]; then
	echo "skipped fuzz: no clang (tool/install-deps.sh long)"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
flags="-std=gnu11 -g -O1 -fno-omit-frame-pointer -D_GNU_SOURCE -Iinclude -Isrc -Itest"
flags="$flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
flags="$flags -DHERDGATE_VERSION=\"$(cat VERSION)\""
mkdir -p $folder/object $folder/corpus $folder/found
passed=0 failed=0

# The rings that take in bytes from outside, compiled once for all fuzzers.
objects=
for source in src/{base,wire,engine,config}/*.c; do
	object=$folder/object/$(tr / _ <<<"${source%.c}").o
	if [ ! "$object" -nt "$source" ] || [ -n "$(find src include -name '*.h' -newer "$object" -print -quit)" ]; then
		"$clang" $flags -c "$source" -o "$object" || { echo "0 passed, 1 failed"; exit 1; }
	fi
	objects="$objects $object"
done

for source in test/fuzz/*.c; do
	[ -e "$source" ] || { echo "no fuzzer in test/fuzz"; break; }
	name=$(basename "$source" .c)
	seeds= said=$folder/$name.log
	[ -d "test/fuzz/corpus/$name" ] && seeds=test/fuzz/corpus/$name
	mkdir -p "$folder/corpus/$name"
	limits="-max_total_time=$seconds -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1"
	limits="$limits -artifact_prefix=$folder/found/$name-"
	if "$clang" $flags -fsanitize=fuzzer "$source" $objects -o "$folder/$name" -lxxhash -lconfuse -lm -lpthread &&
		"$folder/$name" $limits "$folder/corpus/$name" $seeds >"$said" 2>&1
	then
		passed=$((passed + 1))
		echo "ok     fuzz.$name ($(sed -n 's/^stat::number_of_executed_units: *//p' "$said") inputs)"
	else
		failed=$((failed + 1))
		echo "FAILED fuzz.$name"
		tail -n 40 "$said" 2>/dev/null
	fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
