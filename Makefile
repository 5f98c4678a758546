# Everything a newcomer runs; CI runs the same lines.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: up native test-native llama-server manifests chromium promtool test test-fast test-engine check format proof perf lock tiny clean install install-dev

up: install  ## install and serve the bundled tiny model on 127.0.0.1:8080
	@$(BIN)/specroute up

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or later is needed: install python3 or set PYTHON=/path/to/python"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed, $$($(PYTHON) --version) found: set PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python requirements.lock pyproject.toml
	$(PIP) install -q --require-hashes -r requirements.lock
	$(PIP) install -q --no-deps -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(PIP) install -q --require-hashes -r requirements-dev.lock
	@touch $@

test: install-dev chromium promtool check  ## every test; brings what it needs
	$(BIN)/pytest

promtool:  ## evaluates the alert rules
	@command -v promtool >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -q update >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends prometheus >/dev/null; } || \
	  echo "No promtool found: install it (Debian: apt-get install prometheus), or the tests of the alert rules fail."

chromium:  ## the browser of the dashboard's tests
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -q update >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends chromium >/dev/null; } || \
	  echo "No Chromium found: install it (Debian: apt-get install chromium), or the dashboard's browser tests cannot run."

test-fast: install-dev  ## under three minutes
	$(BIN)/pytest -m "not slow"

check: install-dev  ## format, lint, layers, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: install-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

BACKEND ?= cpu
JOBS ?= 2
LLAMA := $(VENV)/llama-server
LLAMA_BUILD = PATH=$(abspath $(LLAMA))/bin:$$PATH $(LLAMA)/bin/python deploy/llama_server/build.py --jobs $(JOBS)

$(LLAMA)/.tools: $(BIN)/python
	$(BIN)/python -m venv $(LLAMA)
	$(LLAMA)/bin/pip install -q cmake ninja
	@touch $@

llama-server: $(LLAMA)/.tools  ## a llama-server whose requests choose their draft length (ten minutes)
	$(LLAMA_BUILD) --backend $(BACKEND)

test-engine: install-dev $(LLAMA)/.tools  ## builds a real llama-server (ten minutes), stock and patched, and runs the engine tests on it
	LLAMA_SERVER=$$($(LLAMA_BUILD) --stock) && export LLAMA_SERVER && $(BIN)/pytest -m engine
	LLAMA_SERVER_PATCHED=$$($(LLAMA_BUILD)) && export LLAMA_SERVER_PATCHED && $(BIN)/pytest tests/patched

NATIVE := $(VENV)-native

native: $(NATIVE)/.installed  ## the same gateway with its request path compiled: a wheel in dist/, installed into .venv-native (three minutes of compiling; needs a C compiler)

$(NATIVE)/.installed: $(VENV)/.installed-dev $(shell find router classifier workers deploy/native -name '*.py' -o -name modules.txt)
	$(BIN)/python deploy/native/build.py
	$(BIN)/python -m venv $(NATIVE)
	$(NATIVE)/bin/python -m pip --disable-pip-version-check install -q --require-hashes -r requirements.lock
	$(NATIVE)/bin/python -m pip --disable-pip-version-check install -q --no-deps --force-reinstall dist/specroute-*-cp3*.whl
	@touch $@

# What mypyc makes calls throw() with three arguments, which Python 3.12 and later warn about.
NATIVE_WARNING := ignore:the (type, exc, tb) signature of throw:DeprecationWarning

test-native: native  ## the tests on the compiled gateway
	$(NATIVE)/bin/python -m pip --disable-pip-version-check install -q --require-hashes -r requirements-dev.lock
	rm -rf build/native/tests && mkdir -p build/native/tests && cp -r tests deploy docs k8s README.md Makefile CHANGELOG.md pyproject.toml build/native/tests
	cd build/native/tests && $(abspath $(NATIVE))/bin/python -m pytest -W "$(NATIVE_WARNING)" -m "not interpreted" tests/unit/router tests/unit/classifier tests/contracts tests/conformance tests/property tests/integration tests/e2e

proof: install-dev  ## long proofs: faults twenty times over, soak
	SPECROUTE_PROOF=1 $(BIN)/pytest tests -m "slow" --timeout 3600

perf: install-dev  ## measurements, reported and never asserted; needs cc and nginx
	$(BIN)/specroute bench --quick
	sh tests/perf/peers.sh $${TMPDIR:-/tmp}/specroute-peers
	$(BIN)/python tests/perf/compare.py --peers $${TMPDIR:-/tmp}/specroute-peers --rounds 5 --json perf.json --markdown perf.md

lock:  ## repin; hashes and no index address
	$(BIN)/pip-compile -q --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras --allow-unsafe --no-header --extra gateway --extra local -o requirements.lock pyproject.toml
	$(BIN)/pip-compile -q --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras --allow-unsafe --no-header --extra gateway --extra local --extra otel --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	LOCKER=$(BIN)/pip-compile deploy/lock.sh

manifests: install-dev  ## the chart's value sets as plain objects
	$(BIN)/python k8s/render.py

clean:
	rm -rf $(VENV) $(NATIVE) .specroute .pytest_cache .mypy_cache .ruff_cache
