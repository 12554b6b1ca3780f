# pyright: basic
"""The CDC demo: the changes of a PostgreSQL table are copied to another table, and to files.

Two connectors read the table's log, one of them with a transform; a worker is killed with -9
meanwhile. They are fairlead's own, or Debezium's for Kafka Connect. At the end both targets are
checked. The exit code depends on the data only.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from rich.console import Console

from ..demo_run import FAILED, LOOK_SECONDS, OK, DemoRun, moves_table, run_in_folder, verdict_table
from ..output import read_output, visible_files
from ..stage import GROUP, VICTIM, DemoFailedError, Stage
from ..watch import PLAIN_SECONDS, Watcher
from .connectors import DebeziumConnectors, OwnConnectors, fetch_debezium
from .database import DatabaseError, DemoServer, missing_parts
from .shop import END, ROWS, Customers, close_shop, open_shop
from .verdict import COPY, COUNT_COPY, FIND_IN_COPY, HISTORY, judge_changes

_LONGEST_S: Final = 480.0


def demo_cdc(
    seconds: float, workers: int, keep: Path | None = None, *, by_debezium: bool = False
) -> int:
    """Run the demo, with changes for so many seconds; its files are kept in `keep` if given.

    `by_debezium`: the connectors are Debezium's, which are fetched first.

    Returns the exit code: 0 or 1 by the data, 1 also if a requirement is missing, 130 after Ctrl-C.
    """
    console = Console(highlight=False)
    if missing := missing_parts():
        for each in missing:
            console.print(f"the demo needs {each}", soft_wrap=True, markup=False)
        return FAILED
    server = DemoServer()

    def run(stage: Stage) -> int:
        try:
            run = _CdcRun(stage, server, console, seconds, workers, by_debezium=by_debezium)
            return run.run()
        except DatabaseError as error:
            raise DemoFailedError(str(error)) from None

    try:
        return run_in_folder(console, keep, run)
    finally:
        server.stop()


class _CdcRun(DemoRun):
    """One run of the demo."""

    def __init__(
        self,
        stage: Stage,
        server: DemoServer,
        console: Console,
        seconds: float,
        workers: int,
        *,
        by_debezium: bool,
    ) -> None:
        super().__init__(stage, self._print, _LONGEST_S)
        self._server = server
        self._console = console
        self._seconds = seconds
        self._workers = workers
        self._by_debezium = by_debezium
        self._told_at = 0.0
        self._customers = [Customers(server.connect, seed) for seed in range(2)]
        self._seen: set[Path] = set()
        """Files of the history that were searched for the last order."""

    def run(self) -> int:
        """Run the whole demo; return the exit code."""
        self._tell("starting PostgreSQL, with wal_level=logical")
        self._server.start()
        with self._server.connect() as connection:
            open_shop(connection)
        if self._by_debezium:
            fetch_debezium(self._stage.data_dir, self._tell)
        self._tell(f"{ROWS:,} orders are there: starting a node with {self._workers} workers")
        self._stage.start_node(self._workers)
        watcher = Watcher(self._stage.data_dir / "groups" / GROUP)
        try:
            while self._look(watcher) < self._workers:
                time.sleep(LOOK_SECONDS)
            self._play(watcher)
        finally:
            watcher.close()
            for each in self._customers:
                each.stop()
        self._tell("both have the last order: stopping the node")
        return self._judge()

    def _play(self, watcher: Watcher) -> None:
        """Change orders while they are read, kill a worker, and wait for the last order."""
        self._begin(watcher)
        began = time.monotonic()
        while not self._copied() or not watcher.held_by(VICTIM):
            self._wait(watcher)
        begun_copying = time.monotonic()
        while not self.killed_ms:
            self._wait(watcher)
            if time.monotonic() - begun_copying >= min(3.0, self._seconds / 2):
                self.kill(watcher)
        while time.monotonic() - began < self._seconds or not self.has_recovered(watcher):
            self._wait(watcher)
        for each in self._customers:
            each.stop()
        with self._server.connect() as connection:
            close_shop(connection)
        made = sum(each.committed for each in self._customers)
        self._tell(f"{made:,} changes were committed, and the last order is written")
        while not self._is_done():
            self._wait(watcher)

    def _begin(self, watcher: Watcher) -> None:
        kind = DebeziumConnectors if self._by_debezium else OwnConnectors
        connectors = kind(self._server, self._stage.sink).configs()
        if not self._by_debezium:
            self._tell("two connectors read its log from now on, while customers change orders")
            self._start_customers()
            self._create(connectors)
            return
        self._tell("two connectors of Debezium's read the table, and its log from then on")
        self._create(connectors)
        # Killed before, it would begin its snapshot anew, and not know what was deleted since.
        while self._copied() < ROWS or self._count_history() < ROWS:
            self._wait(watcher)
        self._tell("both have all orders: customers change them from now on")
        self._start_customers()

    def _create(self, connectors: Mapping[str, Mapping[str, str]]) -> None:
        for name, config in connectors.items():
            self._stage.create(name, config)

    def _start_customers(self) -> None:
        for each in self._customers:
            each.start()

    def _wait(self, watcher: Watcher) -> None:
        self._look(watcher)
        for each in self._customers:
            if each.error is not None:
                raise DemoFailedError(f"the customers could not go on: {each.error}")
        if time.monotonic() >= self._told_at + PLAIN_SECONDS:
            self._told_at = time.monotonic()
            made = sum(each.committed for each in self._customers)
            self._tell(f"{made:,} changes committed; the copy has {self._copied():,} rows")
        time.sleep(LOOK_SECONDS)

    def _look(self, watcher: Watcher) -> int:
        """Print new moves and failures; return the number of warm workers."""
        view = self.look(watcher)
        if view.failed:
            name, reason = next(iter(view.failed.items()))
            self._tell(f"{name} is FAILED: {reason}")
        return view.warm

    def _copied(self) -> int:
        with self._server.connect() as connection:
            there = connection.execute("SELECT to_regclass(%s)", (COPY,)).fetchone()
            if not there or there[0] is None:
                return 0
            row = connection.execute(COUNT_COPY).fetchone()
            return row[0] if row else 0

    def _count_history(self) -> int:
        return sum(pq.read_metadata(each).num_rows for each in visible_files(self._stage.sink))

    def _is_done(self) -> bool:
        """Return whether both targets have the last order."""
        with self._server.connect() as connection:
            if not connection.execute(FIND_IN_COPY, (END,)).fetchone():
                return False
        return self._has_end()

    def _has_end(self) -> bool:
        new = [each for each in visible_files(self._stage.sink) if each not in self._seen]
        self._seen.update(new)
        return bool(new) and END in read_output(self._stage.sink, HISTORY).rows["id"].to_pylist()

    def _judge(self) -> int:
        with self._server.connect() as connection:
            verdict = judge_changes(connection, self._stage.sink)
        self._console.print(verdict_table(verdict))
        self._console.print(moves_table(self.moves, self.killed_ms))
        for check in verdict.checks:
            if not check.ok and check.detail:
                self._console.print(f"{check.name}: {check.detail}", markup=False)
        self._console.print("PASSED" if verdict.passed else "FAILED")
        return OK if verdict.passed else FAILED

    def _print(self, what: str) -> None:
        since = time.monotonic() - self._began
        with suppress(BrokenPipeError):
            self._console.print(f"{since:5.1f} s  {what}", soft_wrap=True, markup=False)
