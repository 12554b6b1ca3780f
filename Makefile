# Every target sets up what it needs in .venv, from the project's files alone.
PYTHON ?= python3
BIN := .venv/bin
SOAK_MINUTES ?= 10

# A process that imports a module first compiles it for all others: of what pip installs most is never
# imported, so pip is not to compile it.
unexport PYTHONDONTWRITEBYTECODE
# PySpark comes as a source of 450 MB, of which pip makes a wheel: in half the time without compressing
# its jars once more.
export DIST_EXTRA_CONFIG := $(CURDIR)/.ci/wheels.cfg
INSTALL := $(BIN)/python -m pip install --quiet --no-compile

.PHONY: demo servers test test-fast mutants bench soak oldest equal lint docs pictures types format clean

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(INSTALL) --editable '.[dev]'
	touch $@

demo: .venv/ready
	$(BIN)/fairlead demo

# Pytest compiles each file of tests that has changed. Four processes at once would each do so.
.venv/compiled: .venv/ready $(wildcard tests/*.py tests/*/*.py)
	$(BIN)/pytest --collect-only -qq >/dev/null || true
	touch $@

# JVMs of tests start in half the time once one of them has written down the classes that it loaded. Tests with
# Spark wait for the lock. Where Java does not write them, tests are slower, and no more.
.venv/classes: .venv/ready
	flock .venv/classes.lock $(BIN)/fairlead prepare || true
	touch $@

# Servers that tests run against come from packages of the system, where that may be done.
servers:
	tests/servers/install-postgres
	tests/servers/install-pgbouncer
	tests/servers/install-prometheus
	tests/servers/install-chromium

# The first tests of Kafka's row wait for its jars, which mostly wait for the network.
test: .venv/ready servers
	PYTHONPATH=tests $(BIN)/python -m fairlead_tests.kafka.fetch &
	$(MAKE) .venv/classes & \
	$(MAKE) .venv/compiled && $(BIN)/pytest -n 4 --dist loadgroup --no-loadscope-reorder

# What needs no process of its own and no Spark.
test-fast: .venv/ready
	$(BIN)/pytest -n 2 -m "not soak and not cluster and not spark"

# How many small mutations of the program the tests notice, by room; a seed makes the same choice again.
MUTANTS ?= 150
MUTANTS_SEED ?= 1
MUTANTS_MARKS ?= not soak and not cluster and not spark
MUTANTS_ONLY ?=

mutants: .venv/ready
	$(INSTALL) --editable '.[mutants]'
	PYTHONPATH=tests nice -n 10 $(BIN)/python -m fairlead_tests.mutants.run \
		--seed $(MUTANTS_SEED) --number $(MUTANTS) --marks '$(MUTANTS_MARKS)' \
		--notes .venv/mutants --only $(MUTANTS_ONLY)

bench: .venv/ready
	$(INSTALL) --editable '.[bench]'
	$(BIN)/fairlead prepare || true
	@for each in tests/benchmarks/bench_*.py; do PYTHONPATH=tests $(BIN)/python $$each || exit 1; done

# What needs Spark, on the oldest that pyproject.toml allows, or with PYSPARK=4.2.0, say, on another. That
# PySpark leaves sockets open until they are collected.
PYSPARK ?= 4.1.0
PYARROW ?=
OLDER := .venv/pyspark-$(PYSPARK)$(PYARROW:%=-pyarrow-%)

oldest: $(OLDER)/ready
	$(OLDER)/bin/pytest -m "spark and not soak" -o cache_dir=.pytest_cache/pyspark-$(PYSPARK) \
		-W ignore::ResourceWarning

# Whether Arrow reads as Spark does, on another PySpark, and another pyarrow: PYARROW=18.0.0, say.
equal: $(OLDER)/ready
	$(OLDER)/bin/pytest tests/arrow -o cache_dir=.pytest_cache/$(notdir $(OLDER)) -W ignore::ResourceWarning

$(OLDER)/ready: .venv/ready
	$(PYTHON) -m venv $(OLDER)
	$(OLDER)/bin/python -m pip install --quiet --editable '.[test]' 'pyspark==$(PYSPARK)' $(PYARROW:%='pyarrow==%')
	touch $@

soak: .venv/ready
	for crew in connect classic mixed hosts; do \
		$(BIN)/fairlead simulate --crew $$crew --seed 1000 --minutes $(SOAK_MINUTES) || exit 1; done
	CHAOS_SECONDS=$$((60 * $(SOAK_MINUTES))) $(BIN)/pytest --timeout=0 -m soak
	$(BIN)/pytest --timeout=0 --hypothesis-profile=thorough -m "hypothesis and not soak"
	$(MAKE) types oldest
	$(MAKE) equal PYARROW=18.0.0

# What each change is checked with. mypy reads the tests as well.
lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The site: the pages of the repository, each in its place, with the examples that they link. A broken link or anchor
# fails.
docs: .venv/ready
	rm -rf build/pages && mkdir -p build/pages
	find *.md actors events projections runtime docs deploy -name '*.md' -o -name '*.css' -o -name '*.png' -o -path 'deploy/*' -type f \
		-not -path '*/__pycache__/*' | xargs cp --parents --target-directory=build/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# The pictures of README and of docs/, from a drawn node and a real one, by a browser of this machine.
pictures: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m fairlead_tests.page.pictures

# The second opinion on the program's types; it takes twice as long as mypy.
types: .venv/ready
	$(BIN)/pyright actors events projections runtime

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
