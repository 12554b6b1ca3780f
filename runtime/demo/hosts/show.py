"""The demo of several hosts: two nodes are one cluster, and the owner of its group is killed.

Both are on this machine, each with a data folder of its own, as on hosts of their own; what they
have in common is a PostgreSQL server, which keeps the log, and the folders of the files. All
processes of the node that owns the group are killed with -9 while rows are under way. The exit code
depends on the data only: 0 if every row is there exactly once.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from rich.console import Console

from ....actors.transport.ports import free_port
from ....events.group import Group
from ....events.log.reader import LogReader
from ....events.records import OwnerBegan
from ....projections.follow.group import Follower
from ..cdc.database import DatabaseError, DemoServer, missing_parts
from ..demo_run import FAILED, LOOK_SECONDS, OK, run_in_folder, verdict_table
from ..flights import ROWS, FlightsError, ensure_flights
from ..output import visible_files
from ..stage import GROUP, DemoFailedError, Stage, staged
from ..verdict import expect_flights, judge
from ..watch import PLAIN_SECONDS
from .credentials import make_credentials, missing_openssl

_LONGEST_S: Final = 480.0
_KILL_AT: Final = 0.3
"""The owner is killed once this part of the rows is there."""


def demo_hosts(seconds: float, workers: int, keep: Path | None = None) -> int:
    """Run the demo, feeding for so many seconds; each node has so many workers.

    Returns the exit code: 0 or 1 by the data, 1 also if a requirement is missing, 130 after Ctrl-C.
    """
    console = Console(highlight=False)
    missing = [*missing_parts(), *filter(None, [missing_openssl()])]
    for each in missing:
        console.print(f"the demo needs {each}", soft_wrap=True, markup=False)
    if missing:
        return FAILED
    server = DemoServer()

    def run(stage: Stage) -> int:
        try:
            ensure_flights()
            server.start()
            return _HostsRun(stage, server, console, seconds, workers).run()
        except (DatabaseError, FlightsError) as error:
            raise DemoFailedError(str(error)) from None

    try:
        return run_in_folder(console, keep, run)
    finally:
        server.stop()


@dataclass
class _DemoNode:
    """One of the nodes."""

    name: str
    stage: Stage

    def group(self) -> Group:
        """Return the group as this node's copy of the log has it."""
        path = self.stage.data_dir / "groups" / GROUP / "control"
        with LogReader.open(path, GROUP) as log:
            return Follower(GROUP, log).catch_up()


class _HostsRun:
    """One run of the demo."""

    def __init__(
        self, stage: Stage, server: DemoServer, console: Console, seconds: float, workers: int
    ) -> None:
        self._stage, self._server, self._console = stage, server, console
        self._seconds, self._workers = seconds, workers
        self._began = time.monotonic()
        self._told_at = 0.0

    def run(self) -> int:
        """Run the whole demo; return the exit code."""
        self._tell("PostgreSQL keeps the log; two nodes are started, each with a data folder")
        common = self._settings()
        with (
            staged(self._stage.folder / "n1") as one,
            staged(self._stage.folder / "n2") as two,
        ):
            nodes = [_DemoNode("n1", one), _DemoNode("n2", two)]
            for node in nodes:
                own = {
                    "node.name": node.name,
                    "kafka.listeners": f"SSL://127.0.0.1:{free_port()}",
                }
                node.stage.start_node(self._workers, {**common, **own})
            while len(nodes[1].group().members) < 2 * self._workers:
                self._wait()
            self._play(nodes)
        return self._judge()

    def _play(self, nodes: list[_DemoNode]) -> None:
        owner, other = self._by_role(nodes)
        self._tell(f"{owner.name} owns the group, {other.name} follows; 365 days of flights land")
        self._stage.source.mkdir()
        other.stage.create_from(self._stage.source, self._stage.sink)
        self._stage.start_feeder(self._seconds)
        while self._published() < _KILL_AT * ROWS:
            self._wait()
        before, killed = other.group(), time.monotonic()
        owner.stage.kill_node()
        self._tell(f"kill -9: all of {owner.name} is gone, the owner, its workers and its copies")
        while self._by_role(nodes)[0] is not other:
            self._wait()
        began = other.group().ownership
        assert isinstance(began, OwnerBegan)  # noqa: S101  # as its role says
        self._tell(
            f"{other.name} owns the group after {time.monotonic() - killed:.1f} s, of which"
            f" {began.silence_ms / 1000:.1f} s were silence; the group's epoch is"
            f" {other.group().group_epoch}, as before ({before.group_epoch})"
        )
        while self._published() < ROWS:
            self._wait()
        self._tell("every row is published: stopping the nodes")

    def _settings(self) -> Mapping[str, str]:
        passfile = self._stage.folder / "pgpass"
        passfile.parent.mkdir(parents=True, exist_ok=True)
        passfile.touch(mode=0o600)
        passfile.write_text(f"*:*:*:*:{self._server.password}\n")
        return {
            "log.store": "postgres",
            "log.store.url": f"{self._server.url}?passfile={passfile}",
            "heartbeat.interval.ms": "1000",
            "session.timeout.ms": "12000",
            **make_credentials(self._stage.folder / "credentials"),
        }

    def _by_role(self, nodes: list[_DemoNode]) -> tuple[_DemoNode, _DemoNode]:
        """Return the owner, and the other one."""
        one, two = nodes
        living = [each for each in nodes if each.stage.is_up]
        ownership = living[-1].group().ownership
        is_one = ownership is not None and ownership.node == one.name
        return (one, two) if is_one else (two, one)

    def _published(self) -> int:
        return sum(pq.read_metadata(each).num_rows for each in visible_files(self._stage.sink))

    def _wait(self) -> None:
        if time.monotonic() - self._began > _LONGEST_S:
            raise DemoFailedError(f"it was not done in {_LONGEST_S:.0f} s")
        if time.monotonic() >= self._told_at + PLAIN_SECONDS:
            self._told_at = time.monotonic()
            self._tell(f"{self._published():,} rows are published")
        time.sleep(LOOK_SECONDS)

    def _judge(self) -> int:
        verdict = judge(expect_flights(), self._stage.sink)
        self._console.print(verdict_table(verdict))
        self._console.print("PASSED" if verdict.passed else "FAILED")
        return OK if verdict.passed else FAILED

    def _tell(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
