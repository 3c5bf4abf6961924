# Two commands do everything on a fresh machine with Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin
.PHONY: demo test lint bench soak clean

demo: .venv/ready
	$(BIN)/surefoot demo

test: lint
	$(BIN)/pytest -n 2 --cov --cov-report=term

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python -m benchmarks

soak: .venv/ready
	$(BIN)/python -m tests.study.soak 500
	$(BIN)/python -m tests.soak_clusters

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]" --group dev --group docs
	touch $@

clean:
	rm -rf .venv
