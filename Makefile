# The two commands are `make run` and `make test`. Both need Python 3.11+ and make, nothing else.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help run test test-browser test-endurance test-sdks check fmt bench chaos schema lock clean lint types install python

PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$name && break; done)
VENV := $(or $(VIRTUAL_ENV),.venv)
BIN := $(VENV)/bin
HOME_DIR := $(or $(RELAYBATCH_HOME),.relaybatch)
LOCKED := requirements.txt requirements-dev.txt
UV_COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate
# For who reads the settings and connects to nothing in them: the type checker, the schema.
FOR_TYPES := SECRET_KEY=types DATABASE_URL=postgresql://none@127.0.0.1/none REDIS_URL=redis://127.0.0.1/0
PYTEST := $(BIN)/python -m pytest -q --dist worksteal
# Many tests wait for processes to start: one more at a time than there are processors.
AT_ONCE = $(shell $(BIN)/python -c "import os; print((os.cpu_count() or 1) + 1)")

help:
	@echo "make run     a demo on this machine, with servers of its own, until Ctrl-C"
	@echo "make test    lint, types and the tests"
	@echo "make check   the fast part of it"
	@echo "make test-sdks  other versions and languages of the SDKs, and tools on top of them"
	@echo "make test-endurance  outages, hangs, crowds, limits and chaos, with real workers for minutes"
	@echo "make test-browser  the admin in a real browser (Debian: chromium and chromium-driver)"
	@echo "make fmt     format the code"
	@echo "make bench   measure speed and memory on this machine"
	@echo "make chaos   inject faults into a deployment of its own, and check that nothing is lost (SECONDS=120 SEED=…)"
	@echo "make schema  write docs/openapi.yaml anew"
	@echo "make lock    pin the packages anew"
	@echo "make clean   remove the demo's data and the caches"

run: install
	@exec $(BIN)/python -m relaybatch.quickstart

test: lint types
	@echo "tests: on a private PostgreSQL and Redis"
	@$(PYTEST) -n $(AT_ONCE) -m "not endurance"

test-endurance: install
	@echo "tests: minutes of outages, hangs, crowds, limits and chaos"
	@$(PYTEST) -n auto -m endurance

test-sdks: install
	@echo "clients: each in an environment of its own, kept in ~/.cache/relaybatch-sdks"
	@$(PYTEST) -n auto tests/sdks/each_client.py

check: lint types
	@echo "tests: the fast ones"
	@$(PYTEST) -n auto tests/unit tests/architecture

test-browser: install
	@echo "tests: the admin in a browser"
	@$(BIN)/python -m pytest -q tests/acceptance/test_admin_browser.py

lint: install
	@echo "lint: ruff"
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check . || { echo "some files are not formatted: run make fmt" >&2; exit 1; }
	@echo "imports: import-linter"
	@$(BIN)/lint-imports --no-cache >$(VENV)/imports.log 2>&1 || { cat $(VENV)/imports.log >&2; exit 1; }

types: install
	@echo "types: mypy"
	@$(FOR_TYPES) $(BIN)/mypy .

fmt: install
	@$(BIN)/ruff format .
	@$(BIN)/ruff check -q --fix .

bench: install
	@$(BIN)/python -m bench

chaos: install
	@$(BIN)/python -m tests.chaos --seconds $(or $(SECONDS),120) $(if $(SEED),--seed $(SEED))

schema: install
	@echo "schema: docs/openapi.yaml"
	@$(FOR_TYPES) $(BIN)/python manage.py openapi --file docs/openapi.yaml

lock: install
	@echo "lock: requirements.txt and requirements-dev.txt"
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@PATH="$(BIN):$$PATH" $(UV_COMPILE) requirements.in -o requirements.txt
	@PATH="$(BIN):$$PATH" $(UV_COMPILE) requirements-dev.in -o requirements-dev.txt

clean:
	@if [ -d "$(HOME_DIR)" ]; then $(PYTHON) -m relaybatch.quickstart.clean "$(HOME_DIR)"; fi
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

install: python
	@VENV="$(VENV)" PYTHON="$(PYTHON)" sh .ci/install $(LOCKED)

python:
	@[ -n "$(PYTHON)" ] || { echo "no Python 3.11 or newer on PATH: install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
