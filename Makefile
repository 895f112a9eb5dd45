# `make` lists the targets. Needs make and Python 3.11 or newer with its venv module; the rest
# is installed into .venv, pinned and checked by hash.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
UV ?= uv

ENGINE ?= sqlite
MINUTES ?= 2
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
# Test processes: two per core, because half of the tests wait for other processes most of their time.
JOBS ?= auto
ARGS ?=

# The examples, the benchmarks and the fault runs are imported from the repository's root.
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test postgres pooled redis console console-check console-test clients screenshots check format lint types layers generated supply sbom fix coverage \
	conformance calendar year faults hostile hostile-quick bench bench-peers bench-http bench-pages lock clean

help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.server ## Run the example shop, its worker and the console, until Ctrl-C
	$(BIN)/lamplighter dev examples.shop:app --speed 2880

# Tests that start a database server; `make postgres` runs them.
WITH_SERVER := tests/unit/postgres tests/unit/servers tests/unit/proxies tests/system/test_faults_postgres.py
WITH_REDIS := tests/unit/redis tests/system/test_faults_redis.py
# Tests of workers that every engine passes, each with LAMPLIGHTER_ENGINES; `make test` has them on SQLite.
ON_EACH := $(addprefix tests/system/test_,once.py due.py sleep.py)
# Tests that start a browser, and those that need Node; `make console-test` runs them.
WITH_BROWSER := tests/console
WITH_NODE := tests/clients
TESTS := tests $(addprefix --ignore=,$(WITH_SERVER) $(WITH_REDIS) $(WITH_BROWSER) $(WITH_NODE))

test: $(VENV)/.dev ## Run the tests (ARGS="-k claim" to choose)
	$(BIN)/python -m pytest $(TESTS) -q -n $(JOBS) --dist worksteal $(ARGS)

postgres: $(VENV)/.dev ## Run the contract and the tests of the PostgreSQL engine, on a server of its own
	LAMPLIGHTER_ENGINES=postgres $(BIN)/python -m pytest tests/conformance $(WITH_SERVER) $(ON_EACH) -q -n $(JOBS) --dist worksteal $(ARGS)

pooled: $(VENV)/.dev ## Run the contract through a proxy that gives each transaction another connection
	LAMPLIGHTER_ENGINES=postgres-pooled LAMPLIGHTER_EXAMPLES=12 $(BIN)/python -m pytest tests/conformance -q -n $(JOBS) --dist worksteal $(ARGS)

redis: $(VENV)/.dev ## Run the contract and the tests of the Redis engine, on a server of its own
	LAMPLIGHTER_ENGINES=redis,redis-sharded $(BIN)/python -m pytest tests/conformance $(WITH_REDIS) $(ON_EACH) -q -n $(JOBS) --dist worksteal $(ARGS)

CONSOLE := src/lamplighter/server/console

console: $(VENV)/.dev console/node_modules/.made ## Build the web console into the package (needs Node 20.19 or newer)
	$(BIN)/python tools/console_types.py
	cd console && npm run --silent build

console-check: $(VENV)/.dev console/node_modules/.made ## Check that the committed console is what its sources build
	$(BIN)/python tools/console_types.py --check
	@! grep -nE '"(resolved|url)"' console/package-lock.json tests/clients/package-lock.json || { \
		echo "error: a package-lock.json names where packages come from." >&2; \
		echo "hint: make it anew with the settings of console/.npmrc." >&2; exit 1; }
	@rm -rf build/console
	cd console && CONSOLE_OUT=$(CURDIR)/build/console npm run --silent build
	@diff -rq build/console $(CONSOLE) || { \
		echo "error: $(CONSOLE) is not what console/ builds." >&2; \
		echo "hint: run \`make console\` and commit what it writes." >&2; exit 1; }

# One process per core: a browser waits for nobody.
console-test: $(VENV)/.dev clients ## Look at the console with Chromium, as its users do (ARGS)
	@tools/chromium.sh
	$(BIN)/python -m pytest $(WITH_BROWSER) -q -n $(if $(filter auto,$(JOBS)),logical,$(JOBS)) --dist worksteal $(ARGS)

clients: $(VENV)/.dev build/clients/.made tests/clients/node_modules/.made ## Make clients from the OpenAPI document, in TypeScript and Python, and use them
	$(BIN)/python -m pytest $(WITH_NODE) -q

screenshots: $(VENV)/.dev ## Draw the pictures of the console for the docs
	@tools/chromium.sh
	$(BIN)/python -m tests.console.screenshots

check: format lint types layers generated supply ## Run every check that needs no test: the six below

format: $(VENV)/.dev ## Check the formatting
	$(BIN)/ruff format --check --quiet .

lint: $(VENV)/.dev ## Check style, spelling, and that clock and chance go through the runtime
	$(BIN)/ruff check --quiet .
	$(BIN)/python tools/seams.py
	$(BIN)/codespell

types: $(VENV)/.dev ## Check the types, strictly
	$(BIN)/pyright src $(wildcard typing_tests)

layers: $(VENV)/.dev ## Check that imports point down only
	$(BIN)/lint-imports --no-cache --no-logo

generated: $(VENV)/.dev ## Check that generated files are up to date
	$(BIN)/python tools/state_machine.py --check
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/python_reference.py --check

supply: $(VENV)/.dev ## Check that requirements are pinned, hashed, declared and name no host
	$(BIN)/python tools/supply.py

sbom: $(VENV)/.dev ## Write the list of what a release contains to dist/sbom.json
	mkdir -p dist
	$(BIN)/python tools/supply.py --sbom dist/sbom.json

fix: $(VENV)/.dev ## Format, repair what can be repaired, write generated files
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	$(BIN)/python tools/state_machine.py
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/python_reference.py

coverage: export COVERAGE_FILE := $(CURDIR)/.coverage
coverage: $(VENV)/.dev ## Run the tests, measured with their child processes; below 90 % fails (ARGS)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TESTS) -q -n $(JOBS) --dist worksteal $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90

conformance: $(VENV)/.dev ## Run the contract every engine must keep
	$(BIN)/python -m pytest tests/conformance -q -n $(JOBS) --dist worksteal $(ARGS)

calendar: $(VENV)/.dev ## Hold the calendar against a brute-force oracle: all zones, all transitions (SEED)
	$(BIN)/python -m tests.calendar --seed $(SEED)

year: $(VENV)/.dev ## Let a year pass for 50,000 tenants in 40 zones, and count every bill (ENGINE; TENANTS for fewer)
	$(BIN)/python -m tests.year --engine $(ENGINE) $(if $(TENANTS),--tenants $(TENANTS))

faults: $(VENV)/.dev ## Kill workers under load and audit the store (ENGINE, MINUTES, SEED)
	$(BIN)/python -m tests.faults --engine $(ENGINE) --minutes $(MINUTES) --seed $(SEED)

hostile: $(VENV)/.dev build/hostile/.made ## Ask all of the HTTP service, and flood it, as hostile clients would (SEED)
	$(BIN)/python -m tests.hostile --seed $(SEED)
	LAMPLIGHTER_FLOOD=1 $(BIN)/python -m pytest tests/system/test_http_floods.py -q -p no:randomly $(ARGS)

hostile-quick: $(VENV)/.dev build/hostile/.made ## Ask all of the HTTP service a few thousand odd things, the same ones each time
	$(BIN)/python -m tests.hostile --seed 1 --examples 8

bench: $(VENV)/.dev ## Measure (ENGINE; QUICK=1 for a short run; JSON=file to keep the numbers)
	$(BIN)/python -m benchmarks --engine $(ENGINE) $(if $(QUICK),--quick) $(if $(JSON),--json $(JSON))

PEERS := peers peers-arq peers-taskiq bullmq

bench-peers: $(VENV)/.dev $(PEERS:%=build/%/.made) ## Measure other job queues beside ours (STORE, ONLY, PAIRS, BATCH, WRITE=1)
	$(BIN)/python -m benchmarks.peers $(if $(STORE),--store $(STORE)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(PAIRS),--pairs $(PAIRS)) $(if $(BATCH),--batch $(BATCH)) $(if $(WRITE),--write)

build/hostile/.made build/clients/.made build/peers/.made build/peers-arq/.made build/peers-taskiq/.made: build/%/.made: requirements/%.txt
	@echo "installing $< into build/$*"
	@$(PYTHON) -m venv --clear build/$*
	@build/$*/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r $<
	@touch $@

bench-pages: $(VENV)/.dev ## Measure what each page of the console takes in a store of a million jobs (ENGINE, ARGS)
	$(BIN)/python -m benchmarks.pages --engine $(ENGINE) $(ARGS)

bench-http: $(VENV)/.dev build/peers/.made build/peers-arq/.made ## Measure the HTTP service beside FastAPI with Celery and arq (ROUNDS, SECONDS, PROCESSES)
	$(BIN)/python -m benchmarks.http $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(PROCESSES),--processes $(PROCESSES))

# Without Node there is no BullMQ; the run says so.
build/bullmq/.made: benchmarks/peers/bullmq/package.json benchmarks/peers/bullmq/package-lock.json
	@mkdir -p build/bullmq && cp $^ build/bullmq/
	@if command -v npm >/dev/null; then \
		echo "installing BullMQ into build/bullmq"; \
		cd build/bullmq && npm install --silent --no-audit --no-fund --ignore-scripts && touch .made; \
	else echo "no npm here: BullMQ is left out"; fi

tests/clients/node_modules/.made: tests/clients/package.json tests/clients/package-lock.json
	cd tests/clients && npm ci --silent
	@touch $@

console/node_modules/.made: console/package.json console/package-lock.json console/.npmrc
	@command -v npm >/dev/null || { \
		echo "error: there is no \`npm\`, and the console is built with it." >&2; \
		echo "hint: install Node 20.19 or newer; nothing else needs it." >&2; exit 1; }
	cd console && npm ci --silent
	@touch $@

lock: ## Pin the requirements again (needs uv; UPGRADE=1 takes the newest versions)
	@command -v $(UV) >/dev/null || { echo "error: \`$(UV)\` not found. hint: install uv, or say UV=path/to/uv" >&2; exit 1; }
	@for name in core build server dev hostile clients peers peers-arq peers-taskiq; do \
		UV_CUSTOM_COMPILE_COMMAND="make lock" $(UV) pip compile --quiet --universal --python-version 3.11 \
			--generate-hashes --no-emit-index-url $(if $(UPGRADE),--upgrade) \
			requirements/$$name.in --output-file requirements/$$name.txt || exit 1; \
	done

clean: ## Delete everything that make has made
	rm -rf $(VENV) build dist console/node_modules tests/clients/node_modules htmlcov .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks examples tools typing_tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The files .venv/.made, .core, .server and .dev stand for what has been installed.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "error: \`$(PYTHON)\` is not Python 3.11 or newer (it says: $$($(PYTHON) --version 2>&1 | head -n 1))." >&2; \
		echo "hint: name another one, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "error: \`$(PYTHON)\` has no working venv module." >&2; \
		echo "hint: on Debian and Ubuntu it is the package python3-venv." >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.made requirements/build.txt requirements/core.txt pyproject.toml
	@echo "installing Lamplighter into $(VENV)"
	@$(PIP) --require-hashes -r requirements/build.txt -r requirements/core.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.server: $(VENV)/.core requirements/server.txt
	@echo "installing what the console needs into $(VENV)"
	@$(PIP) --require-hashes -r requirements/server.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.core requirements/dev.txt
	@echo "installing the development tools into $(VENV)"
	@$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@
