PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test units lint format docs bench peers clean

help:
	@echo "make demo    train on generated streams, compare with a GRU-D, predict online; out/demo.png and a report (two minutes)"
	@echo "make test    lint and units at once: everything that a change must pass"
	@echo "make lint    check format, lint, types and import layers"
	@echo "make units   run all tests and docstring examples"
	@echo "make format  fix format and lint where that is automatic"
	@echo "make docs    build the site into out/site; a broken link is an error"
	@echo "make bench   measure speed against other libraries (installs them); results in out/benchmarks/"
	@echo "make peers   environment with aeon in .peers, for \`python -m experiments defaults\`"
	@echo "make clean   remove .venv, .peers and out"

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or newer is needed; call make PYTHON=..."'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e '.[dev]'
	@# A test oracle that comes as source: without a C++ compiler its tests are skipped.
	-$(PIP) install -c constraints.txt --no-build-isolation iisignature
	touch $@

demo: $(VENV)/.ready
	$(BIN)/python -m examples.demo --out out

lint: $(VENV)/.ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# The type checker uses one core for a while, so lint and units run at once.
test: $(VENV)/.ready
	$(MAKE) --no-print-directory -j 2 lint units

units: $(VENV)/.ready
	@# One process for each file: most of the time is compilation, which processes do not share.
	@# In the order of folders: many small files come last, so that both processes end at about the same time.
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

format: $(VENV)/.ready
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "out/site/index.html"

# Other libraries are for benchmarks only; pysiglib needs torch, whose default build is gigabytes larger than necessary.
$(VENV)/.peers: $(VENV)/.ready
	$(PIP) install -c constraints.txt -e '.[bench]'
	-$(PIP) install torch==2.13.0 && $(PIP) install pysiglib
	touch $@

# aeon, for `python -m experiments defaults`, pins other versions than ours: an environment of its own.
.peers/.ready: experiments/defaults/peers.txt
	$(PYTHON) -m venv .peers
	.peers/bin/python -m pip --disable-pip-version-check --quiet install -r experiments/defaults/peers.txt
	touch $@

peers: .peers/.ready

bench: $(VENV)/.peers
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .peers out
