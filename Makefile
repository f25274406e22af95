# Needs python3 (3.11 or newer) and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test check fixtures lint types format conformance clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "loopscan needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

demo: $(STAMP) ## Set up and replay the fixtures
	$(BIN)/loopscan replay fixtures --ruleset 2026.9 --quiet
	@echo
	$(BIN)/loopscan replay fixtures/detectors/read-notes.jsonl fixtures/live/stopped.jsonl --ruleset 2026.9

test: $(STAMP) ## Set up and run the tests, but for those that install loopscan
	$(BIN)/python -m pytest --numprocesses auto

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

fixtures: $(STAMP) ## Check the fixtures against what they must meet
	$(BIN)/loopscan check fixtures --strict --jobs 2

check: lint types fixtures ## What CI runs: rules, types, fixtures, and all tests, those that install loopscan included
	$(BIN)/python -m pytest --numprocesses auto -m ''

format: $(STAMP) ## Rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

conformance: $(STAMP) ## Ask the published packages afresh (needs npm)
	$(BIN)/python tools/conformance

clean: ## Remove the environment and all that was made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
