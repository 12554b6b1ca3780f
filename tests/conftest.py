"""What the test run can be told: where the conformance data lies, and to retell the stories.

With `--hypothesis-profile=thorough` the properties are tried on many more examples.

A run on several processes (`-n`) takes the tests that start real processes module by module:
those of one module one after the other, as they share what they start, and several modules side
by side, since such tests mostly wait. The longest begin first; tests that only compute fill the
gaps.
"""

import signal

import pytest
from conformance.outcomes import Outcomes
from hypothesis import settings

REAL_PROCESSES = ("cluster", "spark")
"""The marks of tests that start some."""

ORDER: list[tuple[str, ...]] = [("cluster", "spark"), ("spark",), ("cluster",), ()]
"""By what they start: those that take the longest come first."""

settings.register_profile("brief", settings.default, max_examples=30)
settings.register_profile("thorough", settings.default, max_examples=1_000)
settings.load_profile("brief")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance-dir",
        default="../shared/conformance",
        help="folder of reconciliation*.yaml and assignors*, relative to the repository's root",
    )
    parser.addoption(
        "--rewrite-stories", action="store_true", help="write what happens into the stories"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts the run in the background has it ignore SIGINT, and every process that
    # a test starts would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Outcomes())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: ORDER.index(_started_by(item)))
    for item in items:
        if _started_by(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _started_by(item: pytest.Item) -> tuple[str, ...]:
    """Return the marks of the real processes that a test starts."""
    return tuple(mark for mark in REAL_PROCESSES if item.get_closest_marker(mark))
