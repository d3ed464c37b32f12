#!/bin/bash
# Runs suites of tests and counts them: `check.sh SUITE...`, from the top of the source tree. Each suite is built where
# it needs it. Ends with one line `N passed, N failed`, with `, N skipped` where some could not run, and exits 0 only if
# nothing failed.
#
#   unit tidy daemon client                 what `make check` runs, on a build with gcc in build/
#   asan tsan                               unit, daemon and client tests on builds with sanitizers, in build-asan/ ...
#   fuzz                                    the fuzzers of test/fuzz, each for a while
#   client-long daemon-long                 the tests marked long
#
# LONG_SECONDS  how long each fuzzer runs, and after which no further daemon or client test is begun in a long suite.
# TALLY         a file; with it the counts are appended there and the last line is left out (.ci/run adds them up).
set -u
cd "$(dirname "$0")/.."
seconds=${LONG_SECONDS:-300}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs a command whose last line is `N passed, N failed[, N skipped]` and adds its counts up. What it prints is shown
# but for that line; one that ends badly though it counted no failure is a failure.
suite() {
	local name=$1 begin=$SECONDS last ok bad left
	shift
	echo "== $name"
	"$@" 2>&1 | tee "$log" | grep -vE --line-buffered '^[0-9]+ passed, [0-9]+ failed'
	local status=${PIPESTATUS[0]}
	last=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	ok=$(sed -nE 's/^([0-9]+) passed.*/\1/p' <<<"$last")
	bad=$(sed -nE 's/.* ([0-9]+) failed.*/\1/p' <<<"$last")
	left=$(sed -nE 's/.* ([0-9]+) skipped.*/\1/p' <<<"$last")
	ok=${ok:-0} bad=${bad:-0} left=${left:-0}
	if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		echo "FAILED $name: it ended with $status"
		bad=1
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + left))
	echo "-- $name: $ok ok, $bad not ok, $left left out, $((SECONDS - begin)) s"
}

# Builds a folder with these options of meson; counts as a test of its own. Meson lists the files of test/unit and
# test/contract when it is set up, so a new one there makes it look again.
build() {
	local folder=$1 said=
	shift
	if [ ! -f "$folder/build.ninja" ]; then
		said=$(meson setup "$folder" "$@") || { echo "$said"; return 1; }
	elif [ -n "$(find test/unit test/contract -maxdepth 0 -newer "$folder/build.ninja")" ]; then
		said=$(meson setup --reconfigure "$folder") || { echo "$said"; return 1; }
	fi
	ninja -C "$folder" --quiet &&
		{ [ ! -x "$folder/src/cli/herdgate" ] || ln -sf src/cli/herdgate "$folder/herdgate"; } &&
		echo "1 passed, 0 failed"
}

# The unit and contract tests of a build folder, each test function counted.
unit() {
	CMOCKA_MESSAGE_OUTPUT=tap meson test -C "$1" --no-rebuild >"$1/meson-test.log" 2>&1
	tool/count-meson.py "$1"
}

sanitized() {
	local folder=build-$1
	suite "build-$1" build "$folder" "-Db_sanitize=$2" -Db_lundef=false --buildtype=debugoptimized
	suite "unit-$1" unit "$folder"
	suite "daemon-$1" env HERDGATE="$PWD/$folder/herdgate" SLOWER=4 \
		test/daemon/run.py --seconds "$seconds" test/daemon test/client
}

for name in "$@"; do
	case $name in
	unit) suite build build build; suite unit unit build ;;
	tidy) suite tidy tool/tidy/run.sh build ;;
	daemon) suite daemon test/daemon/run.py test/daemon ;;
	client) suite client test/daemon/run.py --jobs 3 test/client ;;
	daemon-long | client-long)
		suite "$name" test/daemon/run.py --only-long --seconds "$seconds" "test/${name%-long}" ;;
	asan) sanitized asan address,undefined ;;
	tsan) sanitized tsan thread ;;
	fuzz) suite fuzz tool/fuzz.sh "$seconds" ;;
	*) echo "check.sh: no such suite: $name" >&2; exit 2 ;;
	esac
done

if [ -n "${TALLY:-}" ]; then
	echo "$passed $failed $skipped" >>"$TALLY"
elif [ "$skipped" -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ "$failed" = 0 ]
