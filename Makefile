# Two commands: `make demo` and `make test`. Both work from a fresh clone with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types unit bench clean

demo: $(STAMP)
	$(BIN)/spam-gnn demo --out demo-run

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks

types: $(STAMP)
	$(BIN)/basedpyright

# one thread per process: the graphs are small, and two processes share two cores
unit: $(STAMP)
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(STAMP)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/readers.py
	$(BIN)/python benchmarks/posterior.py

# torch first and alone, so that pip takes the CPU build that requirements.txt pins and no other package chooses another
$(STAMP): requirements.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

clean:
	rm -rf $(VENV) demo-run
