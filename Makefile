# The few commands people type. Each is one or two CMake presets (CMakePresets.json), built in build/<preset>.
#   make run        make test        make help

.DEFAULT_GOAL := help
SHELL := /bin/bash
# So that a test run piped through anything still fails when a test does.
.SHELLFLAGS := -eu -o pipefail -c
# The targets below are steps, and ninja and ctest are parallel by themselves.
.NOTPARALLEL:
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Passed to ctest, for example: make test TESTS='-R Mask'
TESTS ?=

.PHONY: help
help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build/release/build.ninja ## build the command, then walk a sentence through attention: rapt explain
	cmake --build --preset release --parallel $(JOBS) --target rapt_cli
	build/release/rapt explain

.PHONY: build
build: build-release ## build the library, the command, the examples and the tests, optimised

.PHONY: test
test: test-release ## build and run every test

.PHONY: test-dev test-shared test-sanitize test-tsan test-release
test-dev: ## every test, built by g++ with warnings as errors
test-sanitize: ## every test, built by clang++ under AddressSanitizer and UndefinedBehaviorSanitizer
test-tsan: ## what uses threads, under ThreadSanitizer
test-shared: ## the installed package once more, with a shared library

test-dev test-release test-shared test-sanitize test-tsan: test-%: build-%
	ctest --preset $* --parallel $(JOBS) $(TESTS)

# How many random configurations, and the seed of the first: a failure names its own, which `rapt check --case` repeats.
LONG_CASES ?= 20000
LONG_SEED ?= 1
LONG_CASES_EMULATED ?= 20000
.PHONY: test-long
test-long: build-release setup-cross ## thousands of random cases on every instruction set here, and on an emulated Arm
	build/release/rapt check --random $(LONG_CASES) --seed $(LONG_SEED)
	cmake -S tests/long -B build/aarch64 -G Ninja --toolchain $(CURDIR)/cmake/aarch64.cmake
	cmake --build build/aarch64 --parallel $(JOBS)
	qemu-aarch64 build/aarch64/rapt_check $(LONG_CASES_EMULATED) $(LONG_SEED)

# Seconds for each of the fuzzers.
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: build-fuzz ## throw made-up files at the readers, FUZZ_SECONDS for each format
	scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: bench
bench: build/release/build.ninja ## time rapt beside sgemm, PyTorch and ONNX Runtime, and write docs/benchmarks.md
	@scripts/setup.sh build bench
	cmake --build --preset release --parallel $(JOBS) --target rapt_cli rapt_peer_api
	bench/peers/run.sh build/release

.PHONY: lint
lint: setup-lint ## formatting, clang-tidy, shell and Python: no finding allowed
	scripts/lint.sh

.PHONY: format
format: setup-lint ## format every C++ file in place
	scripts/format.sh

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: setup setup-lint setup-cross
setup: ## install what is missing (Debian and its relatives)
	@scripts/setup.sh build
setup-lint:
	@scripts/setup.sh build lint
setup-cross:
	@scripts/setup.sh build cross

# Ninja reconfigures by itself when a CMake file changed; only a new folder, or changed presets, needs a configure here.
build/%/build.ninja: CMakePresets.json | setup
	cmake --preset $*
build/sanitize/build.ninja build/fuzz/build.ninja: | setup-lint

builds := build-release build-shared build-dev build-sanitize build-tsan build-fuzz
.PHONY: $(builds)
$(builds): build-%: build/%/build.ninja
	cmake --build --preset $* --parallel $(JOBS)
