# Every target sets up what it needs: a virtual environment in .venv, the locked packages, a Java for Spark.
# Stamp files remember what is done, so that a second run adds nothing.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.stamp-ready

# Tests wait for servers, browsers and Spark more than they compute: three workers on two cores.
WORKERS = $(shell expr \( $$(getconf _NPROCESSORS_ONLN) \* 3 + 1 \) / 2)

.PHONY: help setup demo test check docs bench status screenshots java lock wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## set everything up, and nothing more

demo: $(READY) ## show nearcast working (HEADLESS=1: without waiting for anyone)
	@$(BIN)/nearcast demo $(if $(filter-out 0,$(HEADLESS)),--headless) $(ARGS)

test: $(READY) ## run the tests (ARGS="-k grid -x" goes to pytest)
	@sh scripts/install-browser
	@sh scripts/install-promtool
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile $(ARGS)

check: $(READY) ## ruff, mypy --strict, imports go downwards only
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports --no-logo

docs: $(READY) ## build the site of the documentation, without network, and say where it is
	@$(BIN)/python -m scripts.website

bench: $(READY) ## install the peers that the package manager offers, then compare (ARGS="--quick")
	@sh scripts/install-peers
	@$(BIN)/nearcast bench match $(ARGS)
	@$(BIN)/nearcast bench radio $(ARGS)
	@$(BIN)/nearcast bench broker $(ARGS)
	@$(BIN)/nearcast bench pipeline $(ARGS)

status: $(READY) ## measure again what was promised, and write docs/status.md (ARGS="match ar": only these)
	@sh scripts/install-peers
	@$(BIN)/python scripts/status.py $(ARGS)

screenshots: $(READY) ## take the pictures of the live map in docs/images anew, from the running demo
	@sh scripts/install-browser
	@$(BIN)/python scripts/screenshots.py $(ARGS)

java: $(READY) ## say which Java Spark will use
	@$(BIN)/python -m nearcast.pipeline.java

wheel: $(READY) ## build dist/nearcast-*.whl, without network
	@$(BIN)/hatchling build --target wheel --directory dist

lock: $(VENV)/.stamp-bootstrap ## choose and lock all versions anew, with hashes
	@sh scripts/lock $(BIN)/uv

clean: ## remove the virtual environment, caches and leftovers
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Three steps, because each needs the one before: uv and the build tools; the locked packages; nearcast itself.
$(VENV)/.stamp-bootstrap: requirements/bootstrap.txt
	@sh scripts/bootstrap $(VENV)
	@touch $@

$(VENV)/.stamp-locked: requirements/lock.txt $(VENV)/.stamp-bootstrap
	@sh scripts/install-locked $(BIN)
	@touch $@

$(READY): pyproject.toml $(VENV)/.stamp-locked
	@test -f README.md || { echo "make: README.md is missing" >&2; exit 1; }
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --offline --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m nearcast.pipeline.java
	@touch $@
