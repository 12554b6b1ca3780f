"""A connector and its tasks on an engine, without a worker."""

import threading
from collections.abc import Callable, Mapping

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.engine import Engine
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

TOKEN = Token(1, 0)
LOOKS = 900
LOOK_S = 0.1


def run(engine: Engine, config: Mapping[str, str], until: Callable[[Reports], bool]) -> Reports:
    """Run a connector and its tasks until a condition holds; return the reports."""
    name, reports, ledger = config["name"], Reports(), MemoryLedger()
    runner = Runner(engine, ledger, find_plugins(), reports)
    runner.start(Launch(Resource(name), TOKEN, config, config))
    try:
        made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        assert isinstance(made, TaskConfigsChanged)
        for task, task_config in enumerate(made.configs):
            runner.start(Launch(Resource(name, task), TOKEN, config, task_config))
        pause = threading.Event()
        for _ in range(LOOKS):
            if until(reports):
                return reports
            pause.wait(LOOK_S)
        raise AssertionError(reports.told)
    finally:
        runner.close(60)


def has_failed(reports: Reports) -> bool:
    return any(each.state is RunState.FAILED for each in reports.statuses)


def has_read(rows: int) -> Callable[[Reports], bool]:
    """Return a condition: so many rows were read in committed batches."""
    return lambda reports: (
        has_failed(reports) or sum(each.commit.rows_in for each in reports.batches) >= rows
    )
