"""One run: real servers, and one node with all pairs, under the same faults."""

import os
import subprocess
import tempfile
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairlead_tests.chaos.crew import Crew
from fairlead_tests.chaos.harsh_faults import Disk
from fairlead_tests.kafka.broker import Broker, broker_at
from fairlead_tests.matrix.ends import Room, SourceEnd
from fairlead_tests.matrix.faults import Disks, Faults
from fairlead_tests.matrix.files import FilesSink, FilesSource
from fairlead_tests.matrix.kafka import KafkaSink, KafkaSource
from fairlead_tests.matrix.pairs import Pair, pairs_of, wait_whole
from fairlead_tests.matrix.postgres import (
    PostgresChangesSource,
    PostgresLogSource,
    PostgresSink,
    PostgresSource,
)
from fairlead_tests.postgres_server import PostgresServer, started

_CUSTOMIZED = Path(__file__).parent / "points"
DISK_MIB = 256
"""The size of each disk that may fill up."""


@dataclass(frozen=True)
class Run:
    """A node that runs all pairs while rows are written, with the injected faults."""

    node: Crew
    pairs: Sequence[Pair]
    faults: Faults

    @property
    def sound(self) -> list[Pair]:
        return [each for each in self.pairs if not each.is_mutant]

    @property
    def mutants(self) -> list[Pair]:
        return [each for each in self.pairs if each.is_mutant]

    def finish(self) -> None:
        """Stop the writers, and wait until all rows have arrived."""
        for each in {pair.source.kind: pair.source for pair in self.pairs}.values():
            each.stop()
        wait_whole(self.node, self.pairs)


def with_points(environ: Mapping[str, str], points: Path) -> Mapping[str, str]:
    """Return the environment that patches a node's processes with points; creates their folder."""
    points.mkdir()
    return {**environ, "PYTHONPATH": str(_CUSTOMIZED), "MATRIX_POINTS": str(points)}


@contextmanager
def running(
    node: Crew,
    seed: int,
    *,
    tasks: int,
    pause_s: float,
    has_disks: bool = False,
    only: Collection[str] = (),
) -> Generator[Run]:
    """Yield a run whose pairs all work; raises `NoServer` or `NoPeer` where it has no servers.

    The node was started `with_points`; it is left without work. It may run `only` pairs and mutants
    whose names begin so.
    """
    points = Path(node.environ["MATRIX_POINTS"])
    with ExitStack() as stack:
        # Not pytest's: the database's own user has to come there.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-matrix-")))
        folder.chmod(0o755)
        disks = _disks(folder, stack) if has_disks else None
        room = Room(disks.sinks.folder("sinks") if disks else folder / "sinks", folder / "others")
        for place in room:
            place.mkdir()
        database = stack.enter_context(started(max_connections="200"))
        home = disks.broker.folder("broker") if disks else folder / "broker"
        broker = stack.enter_context(broker_at(home))
        sources = _sources(seed, pause_s, room, database, broker)
        for each in sources:
            each.start()
            stack.callback(each.stop)
        sinks = (FilesSink(room), PostgresSink(database, room), KafkaSink(broker, room))
        chosen = tuple(only) or ("",)
        pairs = [each for each in pairs_of(sources, sinks) if each.name.startswith(chosen)]
        for pair in pairs:
            pair.begin(node, tasks)
        # Mutants may break: nobody waits for them to run.
        sound = [each.name for each in pairs if not each.is_mutant]
        faults = Faults(node, points, database, broker, disks, sound)
        faults.wait_running("the start")
        yield Run(node, pairs, faults)
        node.remove(*(each.name for each in pairs))


def _sources(
    seed: int, pause_s: float, room: Room, database: PostgresServer, broker: Broker
) -> list[SourceEnd]:
    return [
        FilesSource(room, seed, pause_s),
        PostgresSource(database, seed, pause_s),
        PostgresLogSource(database, seed, pause_s),
        PostgresChangesSource(database, seed, pause_s),
        KafkaSource(broker, seed, pause_s),
    ]


def _disks(folder: Path, stack: ExitStack) -> Disks | None:
    """Mount small disks; None if that is not permitted."""
    if os.geteuid() != 0:
        return None
    made = list[Disk]()
    try:
        for name in Disks._fields:
            made.append(Disk(folder / f"{name}-disk", {}, DISK_MIB))
            stack.callback(made[-1].close)
    except subprocess.CalledProcessError:
        return None
    return Disks(*made)
