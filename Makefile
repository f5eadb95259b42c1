# The commands of this project. `make demo` and `make test` do all the set-up they need; see README.md.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
HOST ?= 127.0.0.1
DATA ?= data
WORKERS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE # the tests start hundreds of processes, which need not compile everything anew

.PHONY: help setup python torch engine image postgres chromium demo serve stop test test-full check bench format lock fixtures service-image clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: python torch engine image postgres ## environment with torch, sandbox image; Docker Engine, PostgreSQL if missing

python: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	@echo "setup: installing the locked Python packages into $(VENV)"
	usable() { python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
	usable || sandbox/image/packages.sh python3 python3-venv
	usable || { echo "setup: Python 3.11 or newer is needed; here is $$(python3 --version 2>&1)" >&2; exit 1; }
	command -v curl >/dev/null || sandbox/image/packages.sh curl ca-certificates
	[ -x $(BIN)/python ] || python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

torch: $(VENV)/.torch

$(VENV)/.torch: requirements-torch.lock $(VENV)/.installed
	@echo "setup: installing torch, which units are compared with"
	$(BIN)/python -m pip install --quiet -r requirements-torch.lock
	touch $@

engine:
	@sandbox/image/engine.sh

image: $(VENV)/.installed engine
	@PYTHON=$(BIN)/python sandbox/image/build.sh
	PYTHON=$(BIN)/python sandbox/image/build.sh torch

# Tests start servers of their own from its programs; the one that Debian's package would set up is not wanted.
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || sandbox/image/packages.sh postgresql

# Pages are looked at with it, see tests/browser.
chromium:
	@command -v chromium >/dev/null || sandbox/image/packages.sh chromium

demo: setup ## start the service, submit the sample with curl, print its report, leave the service running
	@PORT=$(PORT) DATA=$(DATA)/demo BIN=$(BIN) service/demo.sh

serve: setup ## run the service in the foreground
	@echo "serve: the service on http://$(HOST):$(PORT)/, data in $(DATA)/serve; stop with Ctrl-C"
	exec $(BIN)/autograder serve --host $(HOST) --port $(PORT) --data $(DATA)/serve

stop: ## stop the service that make demo left running
	@BIN=$(BIN) DATA=$(DATA)/demo service/demo.sh stop

# The longest files first, so that none is left alone at the end.
ABREAST := -n 2 --dist loadfile --no-loadscope-reorder
LONGEST_FIRST := tests/reliability tests/service tests

# Pages are tested in processes of their own: a browser's driver keeps a loop running that other tests would meet.
test: setup chromium lint ## what every change must pass: all but the slowest tests, in the real sandbox
	@echo "test: all tests but the slowest; two at a time those that need no engine, then pages, then the others"
	@failed=0; \
	$(BIN)/python -m pytest -m "not full and not docker and not browser" $(ABREAST) $(LONGEST_FIRST) || failed=1; \
	$(BIN)/python -m pytest -m "not full" -n 2 --dist loadfile tests/browser || failed=1; \
	$(BIN)/python -m pytest -m "not full and docker" || failed=1; \
	exit $$failed

test-full: setup chromium lint build/stryker/.installed ## every test; by hand before a release
	@echo "test-full: every test"
	$(BIN)/python -m pytest -m "not browser"
	$(BIN)/python -m pytest tests/browser

check: python torch lint ## format, lint, types, import contracts and the fast tests
	@echo "check: the fast tests"
	$(BIN)/python -m pytest -q -m "not full and not docker and not browser" -n 2 --dist loadfile

.PHONY: lint
lint: python
	@echo "lint: format, style, types, import contracts"
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy --namespace-packages --explicit-package-bases tinyllm
	$(BIN)/lint-imports --no-cache 2>&1 | tail -n 12

bench: setup build/bench/.installed ## compare with other ways of the same work; ARGS="--variants 30" and the like
	@echo "bench: some minutes; figures are worth what the machine is quiet"
	$(BIN)/python -m bench $(ARGS)

# mutmut and a plain pytest in an environment of their own, with the versions that the product has.
build/bench/.installed: bench/requirements.txt $(VENV)/.installed
	@echo "bench: installing mutmut beside the product's environment"
	python3 -m venv build/bench
	$(BIN)/python -m pip freeze | grep -iE '^(numpy|pytest)==' >build/bench/constraints.txt
	build/bench/bin/python -m pip install --quiet -r bench/requirements.txt -r build/bench/constraints.txt
	touch $@

# What reads Stryker's reports: its packages, node and a browser, for tests only.
build/stryker/.installed: tests/stryker/package-lock.json
	@echo "test-full: installing Stryker's viewer and node if missing"
	command -v npm >/dev/null || sandbox/image/packages.sh nodejs npm
	mkdir -p build/stryker
	cp tests/stryker/package.json tests/stryker/package-lock.json build/stryker/
	npm ci --prefix build/stryker --silent
	touch $@

format: python ## bring the code to the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: python ## pin the newest versions that pyproject.toml allows
	$(BIN)/pip-compile --quiet --upgrade --extra service --extra dev --generate-hashes --allow-unsafe --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-header -o requirements.lock pyproject.toml
	sed 's/ *--hash.*//; s/ \\$$//' requirements.lock >build.constraints
	$(BIN)/pip-compile --quiet --extra service --extra image --generate-hashes --allow-unsafe --strip-extras -c build.constraints \
		--no-emit-index-url --no-emit-find-links --no-header -o service/requirements.lock pyproject.toml
	rm build.constraints

fixtures: torch ## make the course's fixtures again with torch
	@echo "fixtures: running course/oracle/*/*_torch.py"
	for script in course/oracle/*/*_torch.py; do
		unit=$$(basename "$$(dirname "$$script")")
		$(BIN)/python "$$script" "course/fixtures/$$unit/$$(basename "$$script" .py).npz"
	done

service-image: python engine ## the images that docker-compose.yml runs
	@PYTHON=$(BIN)/python service/image.sh
	@service/postgres/image.sh

clean: stop ## remove the environment and all data of demo and serve
	rm -rf $(VENV) $(DATA) build *.egg-info
