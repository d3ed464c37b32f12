# The front door. Meson does the building, in build/; each target installs first what it needs.
# A line `target: ... ## text` is what `make help` prints.
PREFIX ?= /usr/local
VERSION = $(shell cat VERSION)
FORMATTED = find include src test bench example -name node_modules -prune -o -name '*.[ch]' -print
.DEFAULT_GOAL := build
.PHONY: demo check check-long check-asan check-tsan check-fuzz bench build install tidy format clean dist help

demo: build ## the main job over real sockets: a herd of 2,000 without and with a gate, in under a minute
	build/herdgate demo
check: ## install what is missing, build with gcc, run every test; ends with "N passed, N failed"
	tool/install-deps.sh check
	tool/check.sh unit tidy daemon client
check-long: ## what takes longer: sanitizers, fuzzers, long tests (LONG_SECONDS=300 bounds each part)
	tool/install-deps.sh long
	tool/check.sh asan tsan fuzz daemon-long client-long
check-asan: ## unit, daemon and client tests on a build with the address and undefined-behaviour sanitizers
	tool/install-deps.sh check
	tool/check.sh asan
check-tsan: ## the same with the thread sanitizer
	tool/install-deps.sh check
	tool/check.sh tsan
check-fuzz: ## run each fuzzer of test/fuzz for LONG_SECONDS
	tool/install-deps.sh long
	tool/check.sh fuzz
bench: build ## measure speed against other tables and a real redis-server, in one run, by ratio
	tool/install-deps.sh check
	ninja -C build bench
build: ## build the program at build/herdgate, and the library
	tool/install-deps.sh build
	@[ -f build/build.ninja ] || said=$$(meson setup build) || { echo "$$said"; exit 1; }
	ninja -C build
	@ln -sf src/cli/herdgate build/herdgate
install: build ## install program, library, header and manual under DESTDIR= and PREFIX= (/usr/local)
	meson configure build --prefix=$(abspath $(PREFIX)) --libdir=lib
	DESTDIR=$(DESTDIR) meson install -C build
tidy: build ## rings, purity, header, exports, lengths, words, format
	tool/install-deps.sh check
	tool/check.sh tidy
format: ## rewrite the C files as clang-format 14 has them
	$(FORMATTED) | xargs clang-format-14 -i
clean: ## remove everything that was built
	rm -rf build build-asan build-tsan build-fuzz herdgate-*.tar.gz
dist: ## a tarball of the sources, herdgate-VERSION.tar.gz; needs no git
	@mkdir -p build
	tar -czf build/dist.tar.gz --exclude-vcs --exclude='./build' --exclude='./build-*' --exclude='./herdgate-*.tar.gz' \
	  --exclude=__pycache__ --exclude=node_modules --transform='s,^\.,herdgate-$(VERSION),' .
	@mv build/dist.tar.gz herdgate-$(VERSION).tar.gz
help: ## this list
	@sed -nE 's/^([a-z-]+):.* ## (.*)/  make \1\t\2/p' Makefile | expand -t 20
