# Each target does its own set-up (deps/setup.sh: system packages, .venv, dependencies, native module); a set-up
# that is up to date takes no time. Any target may be the first one typed on a bare Debian 12.
# Variables: PYTHON (default python3), CXX, DEPS_MIRROR, DEPS_PREFIX, DEPS_SYSTEM (see deps/fetch_deps.py).

PYTHON ?= python3
export PYTHON
# Keep what the caller has set for other projects out of ours. Without bytecode every worker compiles all tests, and
# every process of a test the package.
unexport PYTHONPATH PYTHONDONTWRITEBYTECODE
export BUILD_CLOCK := $(shell date +%s)
BIN := .venv/bin
SETUP := deps/setup.sh
SAY := deps/setup.sh say
NATIVE_SOURCES = $(shell find vkdispatch_native benchmarks/floor -path benchmarks/floor/build -prune -o \( -name "*.cpp" -o -name "*.hpp" -o -name "*.h" \) -print)

.NOTPARALLEL:
PYTEST := $(BIN)/pytest -q -n auto
.PHONY: demo check test test-plain test-validated test-staged test-variants test-matrices test-portable test-portable-tenth test-asan test-tsan test-faults test-faults-asan test-array-api test-dask lint lint-python docs wheel format clean

demo:
	@$(SETUP) demo
	@$(BIN)/python examples/demo.py

test: lint test-validated test-staged test-portable-tenth docs
	@$(SAY) "all is well"

test-plain:
	@$(SETUP) dev
	@$(SAY) "tests"
	@$(PYTEST) tests

# The tests under the Khronos validation layer, synchronization validation included, and our hazard checker.
test-validated:
	@$(SETUP) dev
	@$(SAY) "tests under validation"
	@VKDISPATCH_DEBUG=1 $(PYTEST) tests

# Without the layer, and as on a GPU whose memory the host does not reach. Kernels are the same there: of their
# tests, a tenth shows that they get and leave their data. Of tests/runtime those are left out that move no data, or
# (interrupts) have a part for staged transfers.
UNSTAGED = compiler compiler_interrupts context disk_cache doctor dummy environment error_pickles installation interrupts \
	listing notebook optimized_python other_names progress spirv spirv_repeat startup untrusted_cache work_names
test-staged:
	@$(SETUP) dev
	@$(SAY) "tests with staged transfers"
	@VKDISPATCH_FORCE_STAGING=1 $(PYTEST) tests/runtime $(UNSTAGED:%=--ignore=tests/runtime/test_%.py) --ignore-glob='*/test_maps_*'
	@VKDISPATCH_FORCE_STAGING=1 $(PYTEST) --one-in 10 tests/shader tests/language tests/runtime/test_maps_*.py

# Every kernel in the form for large buffers, and each invocation doing several elements where it may. Random
# kernels index by numbers that wrap around at 32 bits, which positions of 64 bits do not.
test-variants:
	@$(SETUP) dev
	@$(SAY) "tests with 64-bit positions and device addresses"
	@VKDISPATCH_FORCE_VARIANT=wide,coarse $(PYTEST) tests/shader tests/language --ignore-glob='*/test_random_*'

# Cooperative matrices: MATRIX_DRIVER is the manifest of a Vulkan driver that has them, such as that of a newer
# lavapipe than Debian's (.../icd.d/lvp_icd.json). Without it, or with one that lacks them, they are skipped.
test-matrices:
	@$(SETUP) dev
	@$(SAY) "tests of cooperative matrices"
	@$(if $(MATRIX_DRIVER),VK_DRIVER_FILES=$(MATRIX_DRIVER) VK_ICD_FILENAMES=$(MATRIX_DRIVER)) $(PYTEST) tests/matrices tests/language/test_cooperative.py

# What a device with less does: each test passes, or skips for what the device lacks. PORTABLE_DRIVER is its driver's
# manifest: SwiftShader's, which is fetched if need be. PORTABLE_TESTS is what is run.
PORTABLE_DRIVER ?=
PORTABLE_TESTS ?= tests/families tests/reduce tests/scans tests/selection tests/rearrange tests/sorting tests/fft tests/matrices tests/random_numbers tests/calls tests/language tests/shader tests/runtime tests/native tests/control_flow
PORTABLE_RUN = VKDISPATCH_TEST_PORTABLE=1 VK_DRIVER_FILES=$$driver VK_ICD_FILENAMES=$$driver $(PYTEST)
FIND_PORTABLE = driver=$(or $(PORTABLE_DRIVER),$$($(SETUP) swiftshader))
test-portable:
	@$(SETUP) dev
	@$(SAY) "tests on a device that has less"
	@$(FIND_PORTABLE) && $(PORTABLE_RUN) $(PORTABLE_TESTS)

# The same tests each time. Without a network there may be no such driver.
test-portable-tenth:
	@$(SETUP) dev
	@$(SAY) "a tenth of the tests on a device that has less"
	@$(FIND_PORTABLE) || { $(SAY) "skipped: there is no such device here"; exit 0; }; $(PORTABLE_RUN) --one-in 10 $(PORTABLE_TESTS)

# Each file in a process of its own, which ends before it has grown. SANITIZED_TESTS is what is run.
SANITIZED_TESTS ?= tests
test-asan:
	@$(SETUP) asan
	@$(SAY) "tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@$(SETUP) run-asan $(BIN)/python -m tests.files_apart $(SANITIZED_TESTS)

test-tsan:
	@$(SETUP) tsan
	@$(SAY) "tests under ThreadSanitizer"
	@$(SETUP) run-tsan $(BIN)/python -m tests.files_apart $(SANITIZED_TESTS)

# Calls of Vulkan that fail, by a layer of ours: workloads in processes of their own (tests/faults). FAULTS is how many.
FAULTS ?= 5000
test-faults:
	@$(SETUP) dev
	@$(SAY) "faults"
	@$(BIN)/python -m tests.faults.sweep --count $(FAULTS) --jobs $$(nproc)

# The same with the module built for AddressSanitizer and UndefinedBehaviorSanitizer.
test-faults-asan:
	@$(SETUP) asan
	@$(SAY) "faults under AddressSanitizer and UndefinedBehaviorSanitizer"
	@$(BIN)/python -m tests.faults.building >/dev/null
	@$(SETUP) run-asan env PYTHONPATH=build/asan:. $(BIN)/python -m tests.faults.sweep --count $(FAULTS) --jobs $$(nproc) --timeout 300

# The array API standard's own tests of vkdispatch.numpy: ARRAY_API_TESTS is a clone of data-apis/array-api-tests with
# its submodule. ARRAY_API_EXAMPLES is how many examples each test takes, ARRAY_API_OPTIONS are more options of pytest.
ARRAY_API_TESTS ?=
ARRAY_API_EXAMPLES ?= 5
ARRAY_API_OPTIONS ?=
test-array-api:
	@test -d "$(ARRAY_API_TESTS)/array_api_tests" || { $(SAY) "give the folder of the suite: make test-array-api ARRAY_API_TESTS=/path/to/array-api-tests"; exit 1; }
	@$(SETUP) dev
	@$(SAY) "tests of the array API standard"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r "$(ARRAY_API_TESTS)/requirements.txt"
	@python=$$PWD/$(BIN)/python && cd "$(ARRAY_API_TESTS)" && ARRAY_API_TESTS_MODULE=vkdispatch.numpy ARRAY_API_TESTS_VERSION=2025.12 $$python -m pytest -q -n auto -p no:cacheprovider -W ignore --disable-deadline --max-examples=$(ARRAY_API_EXAMPLES) $(ARRAY_API_OPTIONS) array_api_tests

# Dask's own tests of CuPy as chunks, with vkdispatch.numpy in CuPy's place; they come with the package. DASK_OPTIONS are
# options of pytest.
DASK_OPTIONS ?=
test-dask:
	@$(SETUP) dev
	@$(SAY) "Dask's tests of chunks"
	@$(BIN)/python tests/distributed/dask_tests.py -q -W ignore $(DASK_OPTIONS)

# Two minutes: what is wrong most often, and a tenth of the tests of each folder.
check: lint-python
	@$(SAY) "a tenth of the tests"
	@$(PYTEST) --one-in 10 tests

lint-python:
	@$(SETUP) dev
	@$(SAY) "lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

lint: lint-python
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python docs/stubs.py --check
	@$(BIN)/python -m benchmarks.size
	@$(BIN)/clang-format --dry-run -Werror $(NATIVE_SOURCES)

docs:
	@$(SETUP) dev
	@$(SAY) "docs"
	@$(BIN)/sphinx-build -q -j auto -W --keep-going -b html docs build/docs

# A wheel with the tag of the oldest glibc that it runs on, and the sources, in dist; tried in an environment of its own.
wheel:
	@$(SETUP) dev
	@$(SAY) "wheel"
	@rm -rf dist build/wheel build/wheel-venv
	@$(BIN)/python -m build --no-isolation --outdir build/wheel . >build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl >>build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	@mv build/wheel/*.tar.gz dist
	@$(SAY) "trying the wheel"
	@$(PYTHON) -m venv build/wheel-venv
	@build/wheel-venv/bin/pip install -q --disable-pip-version-check dist/*.whl
	@cd build/wheel-venv && bin/vkdispatch doctor --no-measure
	@ls -l dist

format:
	@$(SETUP) dev
	@$(BIN)/python docs/stubs.py
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(NATIVE_SOURCES)

# The cache of fetched and compiled dependencies, outside this folder, is kept.
clean:
	rm -rf .venv .make build dist *.egg-info vkdispatch_native*.so
