#!/bin/sh
# Installs what is missing to build (`install-deps.sh build`), to check (`check`) or to check at length (`long`):
# packages of Debian 12, and for `check` the Node.js clients of test/client/node into build/client-node.
# As root or through sudo without a question; otherwise it prints the exact line and stops. With everything there it
# takes a fraction of a second and touches neither network nor system.
set -eu
level=${1:-build}
cd "$(dirname "$0")/.."

build="gcc make meson ninja-build pkg-config libc6-dev libxxhash-dev libuv1-dev libsqlite3-dev libjansson-dev
	libconfuse-dev libjemalloc-dev libcmocka-dev"
check="g++ binutils clang-format-14 python3 python3-redis python3-dogpile.cache redis-server redis-tools sqlite3 nodejs
	npm libhiredis-dev php-cli php-redis golang-go golang-github-gomodule-redigo-dev"
long="clang-14 libclang-rt-14-dev"

case $level in
build) wanted=$build ;;
check) wanted="$build $check" ;;
long) wanted="$build $check $long" ;;
*) echo "usage: install-deps.sh [build|check|long]" >&2; exit 2 ;;
esac

# A package counts as there when dpkg says so, or, for the programs that people install otherwise, when the program is.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort)
missing=
for package in $wanted; do
	case $package in
	npm | make | meson | python3) command -v "$package" >/dev/null && continue ;;
	nodejs) command -v node >/dev/null && continue ;;
	esac
	echo "$installed" | grep -qx "$package" || missing="$missing $package"
done

if [ -n "$missing" ]; then
	line="apt-get install -y --no-install-recommends$missing"
	if [ "$(id -u)" = 0 ]; then
		as_root=
	elif sudo -n true 2>/dev/null; then
		as_root=sudo
	else
		echo "Packages are missing, and this is neither root nor a user of sudo. As root, run:" >&2
		echo "  apt-get update && $line" >&2
		exit 1
	fi
	echo "installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	$as_root apt-get update -q >/dev/null
	$as_root env DEBIAN_FRONTEND=noninteractive $line -q >/dev/null
fi

[ "$level" = build ] && exit 0

# The Node.js clients. Without a registry the tests that need them are skipped, and say so.
node=build/client-node
if ! cmp -s test/client/node/package-lock.json "$node/installed"; then
	mkdir -p "$node"
	cp test/client/node/package.json test/client/node/package-lock.json "$node/"
	echo "installing: ioredis, node-redis ($node)"
	if npm ci --prefix "$node" --ignore-scripts --no-audit --no-fund --loglevel=error >"$node/npm.log" 2>&1; then
		cp test/client/node/package-lock.json "$node/installed"
	else
		echo "npm could not install them ($node/npm.log): the tests that need them will be skipped" >&2
	fi
fi
