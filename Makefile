# Everything a newcomer needs: make studio, make test.

PORT ?= 8000
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install install-dev studio test test-servers lint browser slow quality

help:  ## Say what can be done
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: .venv/installed  ## Make .venv and install the pinned packages

install-dev: .venv/installed-dev

studio: .venv/installed  ## Start the Studio: make studio [PORT=8000]
	@exec $(BIN)/python manage.py studio --port $(PORT)

test: .venv/installed-dev  ## Run the tests: make test [ARGS=...]
	@$(BIN)/python -m pytest -n auto -m "not browser and not slow" $(ARGS)
	@echo "The same on PostgreSQL and Redis: make test-servers"

test-servers: .venv/installed-dev  ## Run the tests on PostgreSQL and Redis, where they are
	@$(BIN)/python tests/servers.py -n auto -m "not browser and not slow" $(ARGS)

browser: .venv/installed-dev  ## Run the tests that drive Chromium
	@$(BIN)/python -m pytest -m browser $(ARGS)

slow: .venv/installed-dev  ## Run the long tests: kills, races, many random lives
	@$(BIN)/python -m pytest -m slow $(ARGS)
	@$(BIN)/python tests/servers.py -m slow $(ARGS)

lint: .venv/installed-dev  ## Check style, types, imports and migrations
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy memory agents omsite
	@$(BIN)/lint-imports
	@$(BIN)/python manage.py makemigrations --check --dry-run

quality: .venv/installed  ## Measure memory quality: make quality DATA=FILE [ARGS=...]
	@test -n "$(DATA)" || { echo "Name a file of conversations: make quality DATA=FILE"; exit 1; }
	@database=$$(mktemp -d) && trap 'rm -rf "$$database"' EXIT INT TERM \
		&& export DATABASE_URL="sqlite:///$$database/quality.sqlite3" REDIS_URL= \
		&& $(BIN)/python manage.py migrate --verbosity 0 \
		&& $(BIN)/python manage.py om quality "$(DATA)" $(ARGS)

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "omsite needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/installed: requirements.lock | .venv/bin/python
	@echo "Installing the pinned packages; this takes a minute the first time."
	@$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	@touch $@

.venv/installed-dev: requirements-dev.lock | .venv/bin/python
	@echo "Installing what the tests need; this takes a minute the first time."
	@$(BIN)/pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $@ .venv/installed
