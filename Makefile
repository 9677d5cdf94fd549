# Two commands do everything: `make demo` shows the main job, `make test` runs all tests.
# Each sets up what it needs: a virtual environment in .venv, and an engine in the user's cache.

VENV := .venv
BIN := $(VENV)/bin
XLM := $(BIN)/xlm
NATIVE := backends/xlm_llamacpp/native

# 61 MiB are 48 for weights and staging, and 13 for KV cache and compute buffers.
VRAM ?= 61MiB
DEVICE ?= emulated
PROMPT ?= Explain in two sentences why the sky is blue.

# What the tests' engine runs on beside the CPU: Vulkan where it can be built.
ACCELERATOR ?= $(shell .ci/need vulkan 2>/dev/null && echo vulkan || echo cpu)

# vLLM has an environment of its own, of 3.5 GB: it is kept beside the engines.
VLLM_VENV ?= $(or $(XLM_CACHE),$(HOME)/.cache/xlm-plugin)/vllm-venv

# The first Python that is new enough and can make virtual environments.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.10 python3; do \
  $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && \
  echo $$python && break; done)

.NOTPARALLEL:
.PHONY: demo test lint test-unit test-native test-integration test-vllm engine docs clean

demo: $(VENV)/.installed
	@$(XLM) engine path >/dev/null 2>&1 || $(XLM) engine build --accelerator cpu
	@$(XLM) run demo --chat -p "$(PROMPT)" --device $(DEVICE) --vram $(VRAM) --ctx 512 --ubatch 64 --check

test: lint test-unit test-native test-integration

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)/*/*.[ch]pp

test-unit: $(VENV)/.installed-dev
	$(BIN)/pytest --cov

test-native: native-address,undefined native-thread

test-integration: engine
	$(BIN)/pytest integration

# Checkouts share the environment: each puts itself in first.
test-vllm: $(VLLM_VENV)/.installed-dev
	@$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(VLLM_VENV)/bin/python -m pytest integration/vllm

$(VLLM_VENV)/.installed-dev: $(VLLM_VENV)/.installed pyproject.toml
	@$(VLLM_VENV)/bin/python -m pip install --quiet hypothesis pytest --editable .
	@touch $@

$(VLLM_VENV)/.installed: integration/vllm/environment.py
	@echo "Installing vLLM into $(VLLM_VENV) ..."
	@$(PYTHON) $< $(VLLM_VENV)
	@touch $@

# The device's own tests under a sanitizer.
native-%: engine
	cmake -S $(NATIVE) -B build/$@ -DXLM_LLAMACPP_SOURCE="$$($(XLM) engine path)/../../src" \
	  -DXLM_BUILD_TESTS=ON -DXLM_SANITIZER=$* $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
	CCACHE_BASEDIR="$(CURDIR)" CCACHE_NOHASHDIR=1 cmake --build build/$@ --parallel 2 --target xlm_tests
	build/$@/xlm_tests

engine: $(VENV)/.installed-dev
	$(XLM) engine build --accelerator $(ACCELERATOR)

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/build_reference.py

clean:
	rm -rf $(VENV) build

define install
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '$(1)'
	@touch $@
endef

$(VENV)/.installed: pyproject.toml
	@PYTHON="$(PYTHON)" .ci/need build
	$(call install,.)

$(VENV)/.installed-dev: pyproject.toml
	@PYTHON="$(PYTHON)" .ci/need build tests
	$(call install,.[dev])
	@touch $(VENV)/.installed
