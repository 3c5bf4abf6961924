# Two commands do everything on a fresh machine with Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin
# Tests start many Pythons: what is compiled once should stay so, whatever the machine's habit.
export PYTHONDONTWRITEBYTECODE :=
.PHONY: demo test suite test-fast lint style types docs dist bench soak clean

demo: .venv/ready
	$(BIN)/surefoot demo

# Types are checked beside the tests, and there is a worker more than cores: while one waits for a browser, a database
# or a process, no core is idle.
test: style
	$(MAKE) --jobs 2 types suite

suite: .venv/tools
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --cov --cov-report=
	$(BIN)/coverage report --fail-under=97

test-fast: .venv/tools
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

lint: style types

style: .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/tools
	$(BIN)/mypy

docs: .venv/tools
	$(BIN)/sphinx-build -q -W --keep-going -j 2 -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

dist: .venv/tools
	$(BIN)/python tools/dist.py

bench: .venv/tools
	$(BIN)/python -m benchmarks

soak: .venv/tools
	$(BIN)/python -m tests.study.soak 500
	$(BIN)/python -m tests.soak_clusters

# What the demo needs: under a minute. What tests, documents and releases need comes on top of it.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[plots,study]"
	touch $@

.venv/tools: .venv/ready
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]" --group dev --group docs
	touch $@

clean:
	rm -rf .venv docs/_build docs/made dist
