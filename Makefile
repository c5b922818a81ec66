# Everything a person does with a checkout. `make` alone lists the targets.
# Needs Python 3.10 or later, a C++20 compiler and make; the rest comes from PyPI into $(VENV).

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
# The PyTorch that the tests run on the phantom GPU, a CUDA build; TORCH= leaves them out.
TORCH ?= torch==2.14.1

BIN := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)
# Stub files differ between versions of nanobind, so the one that writes and checks them is fixed.
BUILD_TOOLS := 'scikit-build-core>=0.11' nanobind==3.1.0 'cmake>=3.20' ninja
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
# Without isolation, and with a build folder that belongs to the environment, a build does only what has changed.
INSTALL := $(PIP) --no-build-isolation -Cbuild-dir=$(VENV)/build
SOURCES := $(shell find native CMakeLists.txt pyproject.toml src/movie/_version.py tools/phantom_stops.py -type f)
CPP := $(filter %.h %.cpp,$(SOURCES) $(wildcard tests/native/*))

.DEFAULT_GOAL := help
.PHONY: help demo test quick check bench format stubs clean sanitize faults phantom-matrix bridge-versions

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.built ## install MOVie into .venv and replay two recorded training runs, in seconds
	@$(BIN)/movie demo

test: $(VENV)/.built $(VENV)/.extra-test $(VENV)/.torch ## build and run all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

quick: $(VENV)/.built $(VENV)/.extra-test ## build and run the tests that take less than a few seconds each
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow'

check: $(VENV)/.built $(VENV)/.extra-test $(VENV)/.extra-check ## style, types, stubs and links: everything but tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/python tools/stubs.py --check
	$(BIN)/python tools/links.py

# The native code without Python, under the sanitizers of GCC or Clang. Nothing is suppressed. Threads meet in the soaks.
sanitize: $(VENV)/.tools ## run the native tests under the address, undefined-behaviour and thread sanitizers
	@set -e; for run in 'address parts replays soaks faults phantom' 'thread soaks phantom'; do \
	  set -- $$run; sanitizer=$$1; shift; build=$(VENV)/sanitize-$$sanitizer; \
	  $(BIN)/cmake -S . -B $$build -G Ninja -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DCMAKE_BUILD_TYPE=None \
	    -DCMAKE_CXX_FLAGS='-O1 -g' -DMOVIE_NATIVE_TESTS=ON -DMOVIE_SANITIZE=$$sanitizer \
	    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON > $$build.log; \
	  for test; do \
	    $(BIN)/cmake --build $$build --target test_$$test >> $$build.log || { cat $$build.log; exit 1; }; \
	    echo "== $$sanitizer: $$test"; $$build/tests/native/test_$$test; \
	  done; \
	done

faults: $(VENV)/.tools ## let every driver call fail in turn, and print which places in the code saw that
	@$(BIN)/cmake -S . -B $(VENV)/faults -G Ninja -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DCMAKE_BUILD_TYPE=None \
	  -DCMAKE_CXX_FLAGS='-O1 -g' -DMOVIE_NATIVE_TESTS=ON > $(VENV)/faults.log
	@$(BIN)/cmake --build $(VENV)/faults --target test_faults
	$(BIN)/python tools/fault_sites.py $(VENV)/faults/tests/native/test_faults

# Each release takes about 3 GB of downloads and three minutes; RELEASES='2.6.0 2.15.0' takes some of them.
phantom-matrix: $(VENV)/.built ## try the phantom GPU with each supported release of torch, and print how it went
	$(BIN)/python tools/phantom_matrix.py $(RELEASES)

bridge-versions: $(VENV)/.built ## compile the bridge against the headers of the oldest to the newest supported torch
	$(BIN)/python tools/bridge_versions.py $(RELEASES)

bench: $(VENV)/.built ## measure: each program in benchmarks prints its table, or writes it (docs/ablations.md)
	@for bench in $(filter-out benchmarks/make_%,$(wildcard benchmarks/*.py)); do echo "== $$bench"; $(BIN)/python $$bench || exit 1; done

format: $(VENV)/.extra-check ## put Python and C++ sources into the project's format
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

stubs: $(VENV)/.built $(VENV)/.extra-check ## write the type stubs of the native module anew
	$(BIN)/python tools/stubs.py

clean: ## remove what was built, and the virtual environment
	rm -rf build dist $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Stamps: a step is done again only when what it depends on has changed.
$(VENV)/.tools:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip  # those that old Pythons bring cannot pass settings to a build
	$(PIP) $(BUILD_TOOLS)
	@touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(INSTALL) -e .
	@touch $@

# torch first: others build against it. Where it cannot be had, its tests are skipped and say so; in CI that is a failure.
$(VENV)/.torch: pyproject.toml | $(VENV)/.built
ifneq ($(TORCH),)
	$(PIP) $(TORCH) setuptools && $(INSTALL) -e '.[workloads]' $(TORCH) \
	  || { echo "make: no $(TORCH) for this Python: tests that need it will be skipped"; test "$$CI" != true; }
endif
	@touch $@

# The extras of pyproject.toml: `test` and `check`.
$(VENV)/.extra-%: pyproject.toml | $(VENV)/.built
	$(INSTALL) -e '.[$*]'
	@touch $@
