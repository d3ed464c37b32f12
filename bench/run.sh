#!/bin/sh
# run.sh HERDGATE PROGRAM... - runs each benchmark, shows its table, and at the end all figures with a floor in one.
# JSON=yes prints one object instead, with an array for each program. What cannot run here is named and left out.
set -eu
herdgate=$1
shift
floors=$(mktemp)
output=$(mktemp)
trap 'rm -f "$floors" "$output"' EXIT
json=${JSON:-no}
missing=0
first=yes

[ "$json" = no ] || echo "{"
for program in "$@"; do
	name=$(basename "$program")
	case $name in
	bench-daemon | bench-wake)
		arguments=$herdgate
		if ! command -v redis-server >/dev/null; then
			echo "$name needs redis-server to compare with: tool/install-deps.sh check" >&2
			missing=1
			continue
		fi
		;;
	*) arguments= ;;
	esac
	if [ "$json" = no ]; then
		echo "== $name"
		"$program" $arguments | tee "$output"
		grep ' floor ' "$output" >>"$floors" || true
		echo
	else
		[ "$first" = yes ] || echo ","
		first=no
		printf '"%s": ' "$name"
		"$program" --json $arguments
	fi
done
if [ "$json" = no ]; then
	echo "== all figures with a floor"
	cat "$floors"
	below=$(grep -c 'BELOW' "$floors" || true)
	echo "$(grep -c ' floor ' "$floors" || true) figures, $below below the floor"
else
	echo "}"
fi
exit $missing
