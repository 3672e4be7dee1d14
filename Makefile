PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test units lint format docs bench clean

help:
	@echo "make demo    train on generated streams, compare, predict online; a picture and a report in out/ (about two minutes)"
	@echo "make test    format, lint, types, layers, then all tests and docstring examples"
	@echo "make lint    the first four of these"
	@echo "make docs    build the site into out/site; a broken link is an error"
	@echo "make bench   time against every peer that is installed; results in benchmarks/"

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or newer is needed; call make PYTHON=..."'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e '.[dev]'
	@# An oracle of the tests that comes as source: without a C++ compiler its tests are skipped.
	-$(PIP) install -c constraints.txt --no-build-isolation iisignature
	touch $@

demo: $(VENV)/.ready
	$(BIN)/python -m examples.demo --out out

lint: $(VENV)/.ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# Types take one core a while, so all of it at once.
test: $(VENV)/.ready
	$(MAKE) --no-print-directory -j 2 lint units

units: $(VENV)/.ready
	@# All tests of a file in one process: most of the time is compiling, and what is compiled stays in its process.
	@# In the order of folders: many small files come last, so that no process ends long before the other.
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

format: $(VENV)/.ready
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "out/site/index.html"

# Peers belong to the benchmark only; pysiglib imports torch, whose plain build brings gigabytes that are not needed.
$(VENV)/.peers: $(VENV)/.ready
	$(PIP) install -c constraints.txt -e '.[bench]'
	-$(PIP) install torch==2.13.0 && $(PIP) install pysiglib
	touch $@

bench: $(VENV)/.peers
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) out
