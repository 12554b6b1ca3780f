# Every target sets up what it needs in .venv, from the project's files alone.
PYTHON ?= python3
BIN := .venv/bin
SOAK_MINUTES ?= 10

# What is compiled once is found by all processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast bench soak oldest lint format clean

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: .venv/ready
	$(BIN)/fairlead demo

# Servers that tests run against come from packages of the system, where that may be done.
test: .venv/ready
	tests/servers/install-postgres
	$(BIN)/pytest -n 4 --dist loadgroup --no-loadscope-reorder

# What needs no process of its own and no Spark.
test-fast: .venv/ready
	$(BIN)/pytest -n 2 -m "not soak and not cluster and not spark"

bench: .venv/ready
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@for each in tests/benchmarks/bench_*.py; do PYTHONPATH=tests $(BIN)/python $$each || exit 1; done

# What needs Spark, on the oldest that pyproject.toml allows. That PySpark leaves sockets open until
# they are collected.
oldest: .venv/oldest/ready
	.venv/oldest/bin/pytest -m "spark and not soak" -o cache_dir=.pytest_cache/oldest \
		-W ignore::ResourceWarning

.venv/oldest/ready: .venv/ready
	$(PYTHON) -m venv .venv/oldest
	.venv/oldest/bin/python -m pip install --quiet --editable '.[test]' 'pyspark==4.1.0'
	touch $@

soak: .venv/ready
	$(BIN)/fairlead simulate --seed 1000 --minutes $(SOAK_MINUTES)
	CHAOS_SECONDS=$$((60 * $(SOAK_MINUTES))) $(BIN)/pytest --timeout=0 -m soak
	$(BIN)/pytest --timeout=0 --hypothesis-profile=thorough tests/assignors \
		tests/classic_bytes tests/log tests/planning
	$(MAKE) oldest

# mypy is told all, the tests as well; pyright, which takes twice as long, the program.
lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright actors events projections runtime

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
