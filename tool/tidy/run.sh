#!/bin/sh
# Runs every check of this folder as a test: `tool/tidy/run.sh [BUILD]`. A check prints what is wrong, one line each,
# and ends with 0 (passed), 77 (cannot run here; it says why) or anything else (failed).
set -u
cd "$(dirname "$0")/../.."
build=${1:-build}
passed=0 failed=0 skipped=0
for check in tool/tidy/*.py tool/tidy/*.sh; do
	[ "$check" = tool/tidy/run.sh ] && continue
	name=$(basename "$check" | sed 's/\..*//')
	said=$("$check" "$build" 2>&1)
	case $? in
	0) passed=$((passed + 1)); echo "ok     tidy.$name" ;;
	77) skipped=$((skipped + 1)); echo "skipped tidy.$name: $said" ;;
	*) failed=$((failed + 1)); echo "FAILED tidy.$name"; echo "$said" | sed 's/^/       /' ;;
	esac
done
if [ $skipped -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ $failed = 0 ]
