"""The stores of a log beside the log on one host: appends, beats, how late readers are, catch-up.

    python tests/benchmarks/bench_log_store.py [directory]

PostgreSQL flushes each commit; Kafka has three brokers on this machine, two in sync at least. All
ways take turns, so that all meet the same noise. Prints one JSON line per result, in ms.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from fairlead.events.log.frame import NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.stores.kafka import KafkaStore
from fairlead.events.stores.port import Claimant, LogStore, StoredCommit, StorePosition
from fairlead.events.stores.postgres import PostgresStore
from fairlead_tests.kafka.trio import trio_at
from fairlead_tests.postgres_server import PASSWORD, started

ROUNDS: Final = 400
ENTRY_BYTES: Final = 130
CATCH_UP_COMMITS: Final = 3_000
NODE: Final = Claimant("bench", "127.0.0.1:1", "bench")
PAUSE_S: Final = 0.005

Opened = Callable[[], LogStore]


def report(name: str, **values: float) -> None:
    rounded = {key: round(value, 2) for key, value in values.items()}
    load = round(os.getloadavg()[0], 1)
    sys.stdout.write(json.dumps({"name": name, **rounded, "load": load}) + "\n")
    sys.stdout.flush()


def shares(seconds: list[float]) -> dict[str, float]:
    """Return percentiles in ms."""
    ordered = sorted(seconds)
    return {f"p{share}": ordered[len(ordered) * share // 100] * 1e3 for share in (10, 50, 99)}


class Owner:
    """An owner of a log in a store."""

    def __init__(self, store: LogStore) -> None:
        self.store = store
        position = store.read(StorePosition(), 0.0).position
        made = store.claim(NODE, 0.0)
        assert made is not None
        self.epoch, self.end = made.epoch, position.end

    def append(self, entries: int, body: bytes) -> None:
        self.store.append(self.epoch, StoredCommit(self.end, self.end + entries, body))
        self.end += entries


def bench_writes(directory: Path, owners: Mapping[str, Owner]) -> None:
    """Append by each way in turns, and beat."""
    with closing(GroupLog.open_writer(directory / "log", "bench")) as log:
        for entries in (1, 100):
            body = os.urandom(ENTRY_BYTES * entries)
            batch = [
                NewEntry(7, 1, b"key-%d" % at, b"\xc4\x64" + b"x" * 100) for at in range(entries)
            ]
            times: dict[str, list[float]] = {}
            for _ in range(ROUNDS):
                _timed(times, "LMDB", lambda: log.append(log.end, batch, 1))  # noqa: B023
                for name, owner in owners.items():
                    _timed(times, name, lambda: owner.append(entries, body))  # noqa: B023
                    _timed(times, f"{name}, beat", lambda: owner.store.beat(owner.epoch))  # noqa: B023
            for name, seconds in times.items():
                report(f"{name}: {entries} entries", **shares(seconds))


def _timed(times: dict[str, list[float]], name: str, call: Callable[[], object]) -> None:
    begun = time.perf_counter()
    call()
    times.setdefault(name, []).append(time.perf_counter() - begun)


def bench_lag(name: str, owner: Owner, reader: LogStore) -> None:
    """Measure how long after the acknowledgement a reader has a commit."""
    position, lags = _end_of(reader), list[float]()
    came: list[float] = []

    def follow() -> None:
        at = position
        while len(came) < ROUNDS:
            part = reader.read(at, 0.5)
            at = part.position
            came.extend(time.perf_counter() for _ in part.commits)

    thread = Thread(target=follow)
    thread.start()
    for turn in range(ROUNDS):
        owner.append(1, b"x" * ENTRY_BYTES)
        acknowledged = time.perf_counter()
        while len(came) <= turn:
            time.sleep(0.0002)
        lags.append(max(0.0, came[turn] - acknowledged))
        time.sleep(PAUSE_S)
    thread.join()
    report(f"{name}: a reader has it after the acknowledgement", **shares(lags))


def bench_catch_up(name: str, owner: Owner, opened: Opened) -> None:
    """Read all of a log as a new node."""
    body = os.urandom(ENTRY_BYTES * 100)
    for _ in range(CATCH_UP_COMMITS):
        owner.append(100, body)
    with closing(opened()) as reader:
        begun, used = time.perf_counter(), time.process_time()
        assert _end_of(reader).end == owner.end
        seconds, cpu = time.perf_counter() - begun, time.process_time() - used
    report(f"{name}: catch-up, entries/s", value=owner.end / seconds, per_cpu=owner.end / cpu)


def _end_of(reader: LogStore) -> StorePosition:
    position, is_whole = StorePosition(), False
    while not is_whole:
        part = reader.read(position, 0.0)
        position, is_whole = part.position, part.is_whole
    return position


@contextmanager
def engines(directory: Path) -> Generator[Mapping[str, Opened]]:
    with (
        started(fsync="on", full_page_writes="on") as server,
        trio_at(directory) as trio,
    ):
        url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{server.port}/postgres"
        yield {
            "PostgreSQL": lambda: PostgresStore("bench", url),
            "Kafka": lambda: KafkaStore("bench", {"bootstrap.servers": trio.bootstrap}),
        }


def main(directory: Path | None = None) -> None:
    with (
        tempfile.TemporaryDirectory(dir=directory or Path.cwd()) as scratch,
        engines(Path(scratch)) as opened,
        ExitStack() as stack,
    ):
        stores = {name: stack.enter_context(closing(make())) for name, make in opened.items()}
        owners = {name: Owner(store) for name, store in stores.items()}
        bench_writes(Path(scratch), owners)
        for name, owner in owners.items():
            with closing(opened[name]()) as reader:
                bench_lag(name, owner, reader)
            bench_catch_up(name, owner, opened[name])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
