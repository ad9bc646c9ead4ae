# Everything starts from a bare machine with Python 3.11+, pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
SPARK := $(VENV)/.spark
TYPESCRIPT := 5.9.3
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test test-slow test-lanes test-spark test-all check lint types contracts docs site pictures reproduced bench coverage clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m pip install --quiet virtualenv && $(PYTHON) -m virtualenv --quiet $(VENV); }

$(RUN): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable '.[charts]'
	@touch $@

$(DEV): requirements-dev.txt $(RUN)
	$(PIP) install --constraint constraints.txt --requirement requirements-dev.txt
	@touch $@

# PySpark is 450 MB to download, and nothing but its own tests needs it.
$(SPARK): $(DEV)
	@$(PIP) install --constraint constraints.txt --editable '.[charts,spark]' pysail && touch $@ \
	  || echo "PySpark and Sail cannot be installed here: what needs them will be skipped"

demo: $(RUN)  ## the whole way on generated data; leaves demo-out/report.html
	$(BIN)/polyseme demo --out demo-out --force

# Where Python is told not to keep what it compiled, each of the hundreds of processes that tests start would compile the
# package again.
test test-slow test-lanes test-spark: export PYTHONDONTWRITEBYTECODE :=

test: $(DEV)  ## every test but the slow studies of accuracy (test-slow) and those in a browser (test-lanes) or on Spark (test-spark)
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow and not lane and not browser and not spark"
	@echo "Skipped: studies of accuracy (make test-slow); a browser, crashes and floods (make test-lanes);"
	@echo "Spark and Sail, which want Java 17 or later and PySpark (make test-spark)"

test-slow: $(DEV)  ## the slow studies of accuracy
	$(BIN)/python -m pytest -q -n auto -m "slow and not spark"

test-lanes: $(DEV) typescript  ## with a real browser, PostgreSQL and Node; kills, crashes and floods (some minutes)
	$(BIN)/python -m pytest -q -rs -n auto -m "lane or browser or postgres or node"

test-spark: $(SPARK)  ## on a Spark cluster that loses workers, on Spark Connect and on Sail (some minutes; needs Java)
	$(BIN)/python -m pytest -q -rs -m spark tests/engines/spark

test-all: test test-slow test-lanes test-spark  ## every test

lint: $(DEV)  ## format and lint
	$(BIN)/ruff format --check src tests benchmarks docs/check.py docs/making docs/notebooks
	$(BIN)/ruff check src tests benchmarks docs/check.py docs/making docs/notebooks

types: $(DEV)  ## strict types
	$(BIN)/mypy

contracts: $(DEV)  ## rooms import in one direction only
	$(BIN)/lint-imports

docs: $(DEV)  ## links of the documentation lead somewhere, the help pages are up to date, the site can be built
	$(BIN)/python docs/check.py
	$(BIN)/python docs/making/pages.py

site: $(DEV)  ## the documentation as a site: open site/index.html
	$(BIN)/python docs/making/pages.py

pictures: $(DEV)  ## pictures, outputs of commands and notebooks in the documentation, made again
	$(BIN)/python docs/making/transcripts.py --write
	$(BIN)/python docs/making/notebooks.py --write
	$(BIN)/python docs/making/pictures.py

reproduced: $(DEV)  ## the two charts of docs/reproducing.md, made by the studies mse and learned: some minutes
	$(BIN)/polyseme reproduce mse learnt --out reproduce-out
	cp reproduce-out/pictures/mse-1.svg docs/pictures/reproduced-error.svg
	cp reproduce-out/pictures/learnt-1.svg docs/pictures/reproduced-learnt.svg

check: test lint types contracts docs  ## all of it, as CI runs it

# The compiler is the only package from npm, and only checks; nothing of it is shipped. Where it cannot be had, the test
# that needs it says so and skips.
.PHONY: typescript
typescript:
	@test -e $(VENV)/npm/.typescript-$(TYPESCRIPT) || { \
	  npm install --silent --no-save --no-package-lock --prefix $(VENV)/npm typescript@$(TYPESCRIPT) \
	  && touch $(VENV)/npm/.typescript-$(TYPESCRIPT); } \
	  || echo "The types of the client's modules are not checked: npm, or its registry, is not to be had here"

.PHONY: client-types
client-types: $(DEV) typescript  ## the types of the client's modules (needs Node and npm)
	$(BIN)/python -m pytest -q -rs tests/collection/test_vectors.py -k types_of_the_client

coverage: $(DEV)  ## how often intervals hold the truth, over everything people ask (about two hours)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/coverage.py

bench: $(DEV)  ## speed and accuracy, as ratios
	$(BIN)/python benchmarks/run.py

clean:  ## remove what was made
	rm -rf $(VENV) demo-out site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
