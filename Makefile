# Everything a newcomer needs: make studio, make test.

PORT ?= 8000
PYTHON ?= python3
BIN := .venv/bin
CHAT := $(addprefix tests/browser/test_,chat.py shared.py attachments.py broken_frames.py)
FLEET := tests/degradation tests/crash/test_fleet.py
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install install-dev studio production-local test test-servers lint browser browser-pages screenshots slow slow-servers degradation quality crash hostile fuzz fuzz-ci bench bench-production bench-million audit

help:  ## Say what can be done
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: .venv/installed  ## Make .venv and install the pinned packages

install-dev: .venv/installed-dev

studio: .venv/installed  ## Start the Studio: make studio [PORT=8000]
	@exec $(BIN)/python manage.py studio --port $(PORT)

production-local: .venv/installed  ## Run what docker-compose.yml runs on servers of this machine: make production-local [PORT=8000]
	@export DATABASE_URL="$${DATABASE_URL:-postgresql://postgres@127.0.0.1:5432/postgres}" \
		REDIS_URL="$${REDIS_URL:-redis://127.0.0.1:6379/0}" OM_DISPATCHER=celery OM_BEHIND_PROXY=true \
		OM_HTTPS="$${OM_HTTPS:-false}" SECRET_KEY="$${SECRET_KEY:-only for a trial on this machine}" \
		&& exec $(BIN)/python manage.py production --port $(PORT)

test: .venv/installed-dev  ## Run the tests: make test [ARGS=...]
	@$(BIN)/python -m pytest -n auto -m "not browser and not slow" $(ARGS)
	@echo "The same on PostgreSQL and Redis: make test-servers"

test-servers: .venv/installed-dev  ## Run the tests on PostgreSQL and Redis, where they are
	@$(BIN)/python tests/servers.py -n auto -m "not browser and not slow" $(ARGS)

browser: .venv/installed-dev  ## Drive the chat in Chromium: make browser [ARGS=...]
	@$(BIN)/python -m pytest -n auto -m browser $(CHAT) $(ARGS)

browser-pages: .venv/installed-dev  ## Drive every other page in Chromium
	@$(BIN)/python -m pytest -n auto -m browser tests/browser $(CHAT:%=--ignore=%) $(ARGS)

screenshots: .venv/installed-dev  ## Take the pictures of docs/screenshots anew
	@$(BIN)/python -m tests.browser.pictures

slow: .venv/installed-dev  ## Run the long tests: kills, races, many random lives, every address
	@$(BIN)/python -m pytest -n auto -m slow $(FLEET:%=--ignore=%) $(ARGS)
	@$(BIN)/python tests/servers.py -n auto -m slow tests/upgrade $(ARGS)

slow-servers: .venv/installed-dev  ## Run the long tests of memory, and kills, on PostgreSQL and Redis too
	@$(BIN)/python tests/servers.py -n auto -m slow tests/memory tests/crash/test_kills.py $(ARGS)

degradation: .venv/installed-dev  ## Stop and start servers of our own, and kill processes under load
	@$(BIN)/python -m pytest -m slow $(FLEET) $(ARGS)

crash: .venv/installed-dev  ## Kill processes under load: make crash [TURNS=1000] [ROLLING=1]
	@$(BIN)/python -m tests.crash.fleet --turns $(or $(TURNS),1000) $(if $(ROLLING),--rolling) $(ARGS)

fuzz: .venv/installed-dev  ## Play random lives of memory: make fuzz SEEDS=500 [PROCESSES=4] [JOBS=2] [DATABASE_URL=...]
	@$(BIN)/python -m tests.fuzz.run --seeds $(or $(SEEDS),50) --first $(or $(FIRST),1) \
		--processes $(or $(PROCESSES),1) --jobs $(or $(JOBS),1) $(if $(LOG),--log) $(ARGS)

fuzz-ci: .venv/installed-dev  ## Play fifty seeds of each kind and demand that everything happened
	@$(BIN)/python -m tests.fuzz.ci

bench: .venv/installed-dev  ## Measure what a turn costs: make bench [DATABASE_URL=...] [ARGS="--turns 500"]
	@$(BIN)/python -m tests.bench.run $(ARGS)

bench-production: .venv/installed-dev  ## Measure a production server: make bench-production [ARGS="--seconds 60 --only crowd"]
	@$(BIN)/python -m tests.bench.production $(ARGS)

bench-million: .venv/installed-dev  ## Explain every statement of a turn among a million messages: DATABASE_URL=... make bench-million
	@$(BIN)/python -m tests.bench.million $(ARGS)

hostile: .venv/installed-dev  ## Send every string of a file through chat, Observer and pages: make hostile FILE=strings.json
	@test -n "$(FILE)" || { echo "Name a file, one string a line or a JSON list: make hostile FILE=..."; exit 1; }
	@$(BIN)/python -m tests.hostile.run "$(FILE)"

lint: .venv/installed-dev  ## Check style, types, imports and migrations
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy memory agents omsite
	@$(BIN)/lint-imports
	@$(BIN)/python manage.py makemigrations --check --dry-run

audit: .venv/installed-dev  ## Ask for known holes in the locked packages
	@$(BIN)/python -m tests.audit requirements.lock

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
