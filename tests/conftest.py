"""What the test run can be told: where the conformance data lies, and to retell the stories.

With `--hypothesis-profile=thorough` the properties are tried on many more examples, and on new ones
each time.

A run on several processes (`-n`) takes tests of one kind one after the other: those that start
workers with a Spark each, those that share one Spark of their own process (in two rows, of about
the same length, and a short one), those that start workers without any, which mostly wait (in two
rows), and those that share a server. Who is through with such a row takes up the next one, and then
what only computes.
"""

import compileall
import fcntl
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

import fairlead
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import EngineState
from fairlead.runtime.pipeline.engines.java import sharing_options
from fairlead.runtime.processes.java import find_java
from fairlead_tests import TESTS
from fairlead_tests.conformance.outcomes import Outcomes
from fairlead_tests.running.rows import RowScheduling, place_of

SPARK_ROWS = {
    **dict.fromkeys(("connectors", "transforms"), "second"),
    **dict.fromkeys(("conformance", "spark_cluster", "spark_connect"), "last"),
}
"""The folders of tests with Spark that are taken beside all the others with Spark.

Those of the last row start engines of their own, and close the one that others share.
"""

CLASSES_LOCK = Path(sys.prefix) / "classes.lock"
"""Locked by `make test` while a JVM writes the archive of Spark's classes."""

QUICK_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m"
    " -XX:ParallelGCThreads=1"
)
"""Of JVMs that do a little of everything: no optimising compiler, and with it no less room for
compiled code than with it (a row of tests fills 48 MB, and what is swept is compiled again), no
collection for the room that classes take, and collections by one thread, since there is always
other work."""

SERVERS = ("kafka", "postgres", "stores")
"""The folders of tests that share a server, which each process that runs some of them starts."""

# A change is tried on the same examples as the one before it; `thorough` draws new ones each time.
settings.register_profile(
    "brief", settings.default, max_examples=10, deadline=None, derandomize=True
)
settings.register_profile("thorough", settings.default, max_examples=1_000, deadline=None)
settings.load_profile("brief")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance-dir",
        default="../shared/conformance",
        help="folder of reconciliation*.yaml, assignors* and connect_protocol_bytes*.json,"
        " relative to the repository's root",
    )
    parser.addoption(
        "--wire-dir",
        default="../shared/conformance/wire",
        help="folder of recorded conversations with a broker, relative to the repository's root",
    )
    parser.addoption(
        "--rewrite-stories", action="store_true", help="write what happens into the stories"
    )
    parser.addoption(
        "--rewrite-samples",
        action="store_true",
        help="write what commands show, and the reference, into the pages",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts the run in the background has it ignore SIGINT, and every process that
    # a test starts would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Outcomes())
    if not hasattr(config, "workerinput"):
        _compile_all()


def _compile_all() -> None:
    """Write the byte code of all that processes of tests import; else each compiles it anew."""
    (house,) = map(Path, fairlead.__path__)
    for each in ("actors", "events", "projections", "runtime"):
        compileall.compile_dir(house / each, quiet=2)
    compileall.compile_dir(TESTS / "fairlead_tests", quiet=2)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let nobody change how pytest's handlers format: PySpark's loggers do so with each they get.

    Pytest gives its own to all loggers that do not propagate, and has them for all tests.
    """
    plugin = session.config.pluginmanager.get_plugin("logging-plugin")
    for each in (plugin.caplog_handler, plugin.report_handler) if plugin else ():
        each.setFormatter = lambda _: None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile: some 600,000 objects come to stay, and none goes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> RowScheduling | None:
    return RowScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rows = {item: _row(item) for item in items}
    items.sort(key=lambda item: (place_of(rows[item]), _ends_engine(item)))
    for item, row in rows.items():
        if row:
            item.add_marker(pytest.mark.xdist_group(row))
        if "spark" in row and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "quick_jvms")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait for Spark's archive of classes, outside a test's time limit; others run meanwhile."""
    if "spark" in _kind(item):
        with CLASSES_LOCK.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
    return (yield)


@pytest.fixture(scope="session")
def engine_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the engine of the tests has its files."""
    return tmp_path_factory.mktemp("engine")


@pytest.fixture(scope="session")
def the_engine(engine_folder: Path) -> Iterator[Embedded]:
    """The one engine of all tests that need no other; not yet open."""
    engine = Embedded(engine_folder, cores=2)
    yield engine
    engine.close(20)


@pytest.fixture
def engine(the_engine: Embedded) -> Embedded:
    """Return the engine, warm: one that a test brought down is opened again."""
    if the_engine.state is not EngineState.WARM:
        the_engine.open()
        assert the_engine.wait_warm(120), the_engine.detail
    return the_engine


@pytest.fixture
def engine_to_end(engine: Embedded) -> Embedded:
    """Return the engine to a test that brings it down: it comes after those that use it on."""
    return engine


@pytest.fixture(scope="session")
def quick_jvms() -> Iterator[None]:
    """Have all JVMs be quick to start; those of Spark share its classes."""
    mine = os.environ.get("JAVA_TOOL_OPTIONS", "")
    with pytest.MonkeyPatch.context() as environment:
        shared = " ".join(sharing_options(find_java()))  # also by JVMs that are none of ours
        environment.setenv("JAVA_TOOL_OPTIONS", f"{mine} {QUICK_JVM} {shared}")
        yield


def _kind(item: pytest.Item) -> set[str]:
    """Return the marks by which a test waits for others."""
    return {mark for mark in ("spark", "cluster") if item.get_closest_marker(mark)}


def _row(item: pytest.Item) -> str:
    """Return the name of the row that a test is of, if it has to wait for others."""
    folder, kind = item.path.parent.name, _kind(item)
    if kind == {"spark"} and folder in SPARK_ROWS:
        return f"spark-{SPARK_ROWS[folder]}"
    if kind == {"cluster"} and folder not in SERVERS:
        return "cluster" if folder == "cluster" else "cluster-second"
    if "spark" in kind:
        return "-".join(sorted(kind))
    return folder if folder in SERVERS else ""


def _ends_engine(item: pytest.Item) -> int:
    """Return 0 for a test after which the engine is still there."""
    return int("engine_to_end" in getattr(item, "fixturenames", ()))
