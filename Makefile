# The everyday commands. Most run CMake presets (CMakePresets.json), each of which has its own folder, build/<preset>.
#   make run        make test        make help

.DEFAULT_GOAL := help
SHELL := /bin/bash
# With pipefail, a test run that is piped through another command still fails when a test fails.
.SHELLFLAGS := -eu -o pipefail -c
# The targets below are sequential steps; ninja and ctest run in parallel by themselves.
.NOTPARALLEL:
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Passed to ctest, for example: make test-release TESTS='-R Cli'
TESTS ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build/release/build.ninja ## build the command, then run a trained model and explain attention on a sentence
	cmake --build --preset release --parallel $(JOBS) --target rapt_cli
	build/release/rapt generate
	build/release/rapt explain

.PHONY: build
build: build-release ## build the library, the command, the examples and the tests, optimised

# Everything is installed and built before the first test runs: no test installs anything or needs a network. No recipe
# calls make, because such a line would run even under --dry-run.
.PHONY: test
test: setup-test setup-explorer build/explorer-venv/installed.txt build-release explorer ## build the library and the explorer, run their tests
	ctest --preset release --parallel $(JOBS) $(TESTS)
	$(explorer_tests)

.PHONY: test-dev test-shared test-sanitize test-tsan test-release
test-dev: ## every test, built by g++ with warnings as errors
test-sanitize: ## every test, built by clang++ under AddressSanitizer and UndefinedBehaviorSanitizer
test-tsan: ## tests that use threads, under ThreadSanitizer
test-shared: ## the tests of the installed package, with a shared library

test-dev test-release test-shared test-sanitize test-tsan: test-%: setup-test build-%
	ctest --preset $* --parallel $(JOBS) $(TESTS)

# The package as pip builds it. The folder with the objects is kept, so that only what changed is compiled again.
PYTHON ?= python3
.PHONY: build-python
build-python: build/venv/installed.txt ## the Python package, a wheel in build/python
	rm -rf build/python
	CXX=$${CXX:-c++} build/venv/bin/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/python .

# Passed to pytest, for example: make test-python PYTESTS='-k mask'
PYTESTS ?=
.PHONY: test-python
test-python: build-python ## the Python package: install it in build/venv, run its tests
	build/venv/bin/python -m pip install --quiet --no-deps --force-reinstall build/python/*.whl
	RAPT_TEST_INSTALLED=1 build/venv/bin/python -X dev -m pytest --quiet $(PYTESTS)

# Tests of the package that need PyTorch, and the guide's code blocks, which test-python leaves out.
wanting_torch := $(addprefix bindings/python/tests/test_,torch.py layer_torch.py show_inputs.py guide.py)
# The program that runs rapt's tokenizers, which test-interop compares with the real ones.
.PHONY: build-tokenize
build-tokenize: build/release/build.ninja
	cmake --build --preset release --parallel $(JOBS) --target rapt_tokenize
# PyTorch and the other libraries come from PyPI into build/peers-venv (some gigabytes).
.PHONY: test-interop
test-interop: build-python build-tokenize ## PyTorch, transformers and ONNX on rapt, and their own tests
	venv=$$(scripts/peers.sh) && eval "$$(scripts/peers-env.sh $$venv)" && \
	$$venv/bin/python -m pip install --quiet --no-deps --force-reinstall build/python/*.whl && \
	RAPT_TEST_INSTALLED=1 $$venv/bin/python -m pytest --quiet bindings/python/interop $(wanting_torch) $(PYTESTS)

# Runs Emscripten. NODE_PATH is the folder of the distribution's JavaScript packages, which Emscripten needs and which
# not every Node searches. No compiler launcher is used, because ccache does not support Emscripten.
emscripten := env -u CMAKE_C_COMPILER_LAUNCHER -u CMAKE_CXX_COMPILER_LAUNCHER NODE_PATH=/usr/share/nodejs
.PHONY: wasm test-wasm
wasm: setup-wasm ## build the engine for browsers and Node, build/wasm/rapt_engine.js
	[ -f build/wasm/build.ninja ] || $(emscripten) emcmake cmake -S bindings/wasm -B build/wasm -G Ninja
	$(emscripten) cmake --build build/wasm --parallel $(JOBS)
test-wasm: wasm ## run the case list in Node, and test the engine as pages use it
	node build/wasm/rapt_check.js 100
	node --test bindings/wasm/tests

explorer_tests = build/explorer-venv/bin/python -B -m pytest --quiet --numprocesses $(JOBS) explorer/tests $(PYTESTS)
.PHONY: explorer test-explorer
explorer: setup-explorer wasm ## build the explorer page, build/explorer/rapt.html (rapt view opens it)
	node explorer/build.mjs build/wasm build/explorer/rapt.html
# The tests take the expected answers from the native command.
test-explorer: explorer build/release/build.ninja build/explorer-venv/installed.txt ## test the explorer in a browser
	cmake --build --preset release --parallel $(JOBS) --target rapt_cli
	$(explorer_tests)
.PHONY: pictures
pictures: explorer build/release/build.ninja build/explorer-venv/installed.txt ## update the pictures of the READMEs, docs/pictures
	cmake --build --preset release --parallel $(JOBS) --target rapt_cli
	build/explorer-venv/bin/python -B scripts/pictures.py build/explorer/rapt.html build/release/rapt docs/pictures

# Environments with packages from PyPI, created again when their requirements change.
build/venv/installed.txt: bindings/python/tests/requirements.txt | setup-python
build/explorer-venv/installed.txt: explorer/tests/requirements.txt | setup-explorer
build/lint-venv/installed.txt: scripts/lint-requirements.txt | setup-lint
build/dist-venv/installed.txt: scripts/dist-requirements.txt | setup-python
build/%/installed.txt:
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	cp $< $@

# The Pythons to make wheels for. If empty: the system's own, and of the other installed ones each before 3.12 and the
# first from 3.12 on.
#   make dist PYTHONS='python3.10 python3.12'
PYTHONS ?=
.PHONY: dist test-dist
dist: explorer build/dist-venv/installed.txt ## package the sources, the library, the command and wheels in build/dist
	PYTHONS='$(PYTHONS)' scripts/dist.sh
test-dist: dist ## test the packages: CMake, pkg-config, the shell, and Python without a compiler
	PYTHONS='$(PYTHONS)' scripts/check-dist.sh
.PHONY: test-wheels-bare
test-wheels-bare: dist ## the wheels in a minimal Debian without a compiler, on three Pythons; root and debootstrap needed
	PYTHONS='$(PYTHONS)' scripts/check-wheels-bare.sh

# The number of random configurations, and the seed of the first. A failure names its case, which `rapt check --case`
# repeats.
LONG_CASES ?= 20000
LONG_SEED ?= 1
LONG_CASES_EMULATED ?= 20000
.PHONY: test-long
test-long: build-release build-sanitize-all build-tsan-all build-fuzz setup-cross ## thousands of random cases here and on an emulated Arm; ten minutes of each fuzzer; training killed 50 times
	build/release/rapt check --random $(LONG_CASES) --seed $(LONG_SEED)
	scripts/fuzz.sh 600
	RAPT_KILLS=50 python3 -B tests/cli/train_test.py build/release/rapt Resume
	build/sanitize-all/tests/rapt_tests --gtest_brief=1 --gtest_filter='*EverySet*'
	ctest --preset tsan-all --parallel $(JOBS)
	cmake -S tests/long -B build/aarch64 -G Ninja --toolchain $(CURDIR)/cmake/aarch64.cmake
	cmake --build build/aarch64 --parallel $(JOBS)
	qemu-aarch64 build/aarch64/rapt_check $(LONG_CASES_EMULATED) $(LONG_SEED)

.PHONY: test-fresh
test-fresh: ## `make run` and `make test` of the last commit in a bare Debian 12 (root, or docker, or podman)
	scripts/test-fresh.sh

# Seconds for each of the fuzzers.
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: build-fuzz ## fuzz the file readers, FUZZ_SECONDS for each format
	scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: bench
bench: build/release/build.ninja ## compare with sgemm, PyTorch and ONNX Runtime, and write a page in docs/benchmarks
	@scripts/setup.sh build bench
	cmake --build --preset release --parallel $(JOBS) --target rapt_cli rapt_peer_api
	bench/peers/run.sh build/release

.PHONY: reference
reference: ## build the API reference from the headers: build/reference/index.html
	python3 -B scripts/reference.py . build/reference

.PHONY: lint
lint: setup-lint build/venv/installed.txt build/lint-venv/installed.txt ## check formatting, wording, clang-tidy, shell and Python
	scripts/lint.sh

.PHONY: format
format: setup-lint ## format every C++ file in place
	scripts/format.sh

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: setup setup-ci setup-test setup-lint setup-cross setup-python setup-wasm setup-explorer
setup: ## install what is missing (Debian and its relatives)
	@scripts/setup.sh build
setup-ci: ## what .ci/run needs: every package and environment but the peers'
	@scripts/setup.sh build test python explorer lint ci
setup-ci: build/venv/installed.txt build/explorer-venv/installed.txt build/lint-venv/installed.txt build/dist-venv/installed.txt
setup-test:
	@scripts/setup.sh build test
setup-lint:
	@scripts/setup.sh build lint
setup-python:
	@scripts/setup.sh build python
setup-wasm:
	@scripts/setup.sh build wasm
setup-explorer:
	@scripts/setup.sh build explorer
setup-cross:
	@scripts/setup.sh build cross

# Configures a new build folder, or an existing one after the presets changed. When a CMake file changed, Ninja
# reconfigures by itself.
build/%/build.ninja: CMakePresets.json | setup
	cmake --preset $*
build/sanitize/build.ninja build/sanitize-all/build.ninja build/fuzz/build.ninja: | setup-lint

# The CUDA engine is part of the release build wherever nvcc is found. CUDA=pypi takes the compiler from PyPI instead,
# at a fixed version, for machines without a CUDA toolkit: make CUDA=pypi build
CUDA ?=
ifeq ($(CUDA),pypi)
export CUDACXX := $(CURDIR)/build/cuda-venv/nvcc
build/release/build.ninja build/cuda/build.ninja: | build/cuda-venv/nvcc
endif
build/cuda-venv/nvcc: build/cuda-venv/installed.txt scripts/cuda-toolkit.sh
	scripts/cuda-toolkit.sh $(@D)
build/cuda-venv/installed.txt: scripts/cuda-requirements.txt | setup-python

.PHONY: cuda-binary
cuda-binary: build-cuda ## the command with the CUDA engine, build/cuda/rapt, for GPU machines without a compiler

build/cuda-tools-venv/installed.txt: scripts/cuda-tools-requirements.txt | setup-python
.PHONY: cuda-report
cuda-report: build/release/build.ninja build/cuda-tools-venv/installed.txt ## registers, spills and instructions of every CUDA kernel, docs/cuda-kernels.md
	cmake --build --preset release --parallel $(JOBS) --target rapt_cuda
	python3 -B scripts/kernel_report.py build/release

builds := build-release build-shared build-dev build-sanitize build-sanitize-all build-tsan build-tsan-all build-fuzz build-cuda
.PHONY: $(builds)
$(builds): build-%: build/%/build.ninja
	cmake --build --preset $* --parallel $(JOBS)
