# memoryd: what can be done here. `make help` lists it.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Tests wait for daemons, disks and clients more than they compute: half as many again as there are cores.
WORKERS := $(shell echo $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 )))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo run gate gate-slow test lint types layers docs bench bench-haystack bench-lessons bench-peers bench-recall \
        bench-smoke replay device-check mutate chaos soak screens clean

help:  ## show this list
	@echo "memoryd: make TARGET   (PYTHON=$(PYTHON))"
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 18

setup: $(STAMP)  ## install into .venv (done by every target that needs it)

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "setup: no '$(PYTHON)' here. Install Python 3.11 or newer, or say PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "setup: $$($(PYTHON) --version 2>&1) is too old; memoryd needs 3.11 or newer. Say PYTHON=python3.11 (or newer)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "setup: this Python cannot make virtual environments (python3-venv is missing). Remedy: apt-get install python3-venv"; exit 1; }
	@echo "setup: $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,mcp,web]' --constraint constraints.txt
	@$(BIN)/python -m compileall -q memoryd bxctl
	@touch $@

demo: $(STAMP)  ## a throw-away daemon over this machine's logs: ask, show, delete
	@$(BIN)/python examples/demo.py

run: $(STAMP)  ## the daemon in the foreground, on your own logs
	@exec $(BIN)/memoryd

gate: $(STAMP)  ## every check that a change must pass (minutes)
	@$(MAKE) --no-print-directory lint types layers bench-smoke test
	@echo "gate: ok"

gate-slow: $(STAMP)  ## the slower real checks: slow tests, then device-check
	@echo "gate-slow: pytest -m slow"
	@$(BIN)/python -m pytest -q -m slow -n $(WORKERS)
	@$(MAKE) --no-print-directory device-check
	@echo "gate-slow: ok"

lint: $(STAMP)  ## ruff: format and rules
	@echo "gate: ruff format --check"
	@$(BIN)/ruff format --check --output-format concise . || { echo "remedy: $(BIN)/ruff format ."; exit 1; }
	@echo "gate: ruff check"
	@$(BIN)/ruff check --output-format concise .

types: $(STAMP)  ## mypy --strict
	@echo "gate: mypy --strict"
	@$(BIN)/mypy --strict memoryd bxctl

layers: $(STAMP)  ## import contracts: data flows downhill
	@echo "gate: import contracts"
	@$(BIN)/lint-imports --no-cache --no-logo

test: $(STAMP)  ## pytest: random order, warnings are errors, docs tests among them
	@echo "gate: pytest"
	@$(BIN)/python -m pytest -q -n $(WORKERS)

docs: $(STAMP)  ## only the docs tests
	@$(BIN)/python -m pytest -q tests/test_docs.py

bench: $(STAMP)  ## the table of ratios of docs/implementer-log.md
	@$(BIN)/python -m bench

bench-recall: $(STAMP)  ## retrieval quality, an arm a device; CORPUS=DIR (or MEMORYD_CORPUS) has the questions
	@$(BIN)/python -m bench.recall $(if $(CORPUS),--corpus $(CORPUS))

bench-haystack: $(STAMP)  ## the planner against scoring every row, real sessions among a million made rows; CORPUS=DIR
	@$(BIN)/python -m bench.haystack $(if $(CORPUS),--corpus $(CORPUS))

bench-peers: $(STAMP)  ## installs memoryd's peers into a throw-away folder and holds them side by side (minutes)
	@$(BIN)/python -m bench.peers

bench-smoke: $(STAMP)  ## every bench once on next to nothing: do they run?
	@echo "gate: bench-smoke"
	@$(BIN)/python -m bench.smoke

bench-lessons: $(STAMP)  ## are lessons found? five ways to answer, two corpora (docs/lessons.md)
	@$(BIN)/python -m bench.retrieval

replay: $(STAMP)  ## recorded sessions through the code that learns; CORPUS=DIR adds its session logs
	@$(BIN)/bxctl memory lessons replay tests/replay/fixtures $(if $(CORPUS),$(CORPUS)/sessions)

device-check: $(STAMP)  ## a disposable store and a real daemon, under two minutes
	@$(BIN)/python examples/device_check.py

mutate: $(STAMP)  ## do the tests notice a fault? MODULES="memoryd.labels" for some (docs/mutation.md)
	@$(BIN)/python etc/mutate.py $(MODULES)

chaos: $(STAMP)  ## break things under memoryd for SECONDS (240), by SEED (random): docs/chaos.md
	@$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PART),--part $(PART)) $(if $(ROUND),--round $(ROUND))

soak: $(STAMP)  ## the same beside a daemon that stays up, for HOURS (8): nothing may grow
	@$(BIN)/python -m tests.chaos.soak $(or $(HOURS),8)

screens: $(STAMP)  ## the pictures of docs/img, of an invented memory in Debian's Chromium
	@$(BIN)/python etc/screens.py

clean:  ## remove the virtual environment and every cache
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
