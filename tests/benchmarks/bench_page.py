"""The cost of a page: lists and `/state`, open streams, a change, and the memory of an hour.

Open streams are measured in pairs: the same reads with them and without, in turn, over one process.
The memory of an hour is what the REST process has allocated for it once it has recorded one, at a
speed of 150.
"""

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from itertools import count, product
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx
import psutil

from fairlead.events.commits import CommitId, Cost, Lag, TaskProgress
from fairlead.events.entries.codec import OFFSETS, encode
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import (
    Cause,
    MemberState,
    Resource,
    RunState,
    TaskConfig,
    Token,
    Why,
)
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    TaskConfigs,
    TaskStatus,
)
from fairlead.projections.page.rings import STEPS
from fairlead.runtime.interfaces.rest.reading.feed import WATCHED_SECONDS
from fairlead_tests.benchmarks import quick_hour
from fairlead_tests.benchmarks.figures import median, percentile, tell
from fairlead_tests.benchmarks.groups import ASSIGNORS, member_id
from fairlead_tests.rest.process import MODULE, running

CONNECTORS: Final = 1_000
FEW_CONNECTORS: Final = 90
TASKS: Final = 10
MEMBERS: Final = 100
STREAMS: Final = 100
OPEN: Final = f"{STREAMS} streams"
IDLE_SECONDS: Final = 20
ROUNDS: Final = 20
"""How many pairs of reads with and without streams."""
ROUND_READS: Final = 100
CHANGE_SECONDS: Final = 0.1
CHANGES: Final = 50
READS: Final = 200
NOW_MS: Final = 1_700_000_000_000
SHAPE: Final = f"{CONNECTORS} connectors, {CONNECTORS * TASKS} tasks, {MEMBERS} members"
LIST: Final = "/connectors?expand=status"
PATHS: Final = (
    "/health/live",
    "/state",
    LIST,
    f"{LIST}&limit=100",
    f"{LIST}&expand=progress",
    f"{LIST}&extended=true",
)
"""What is read, after the path that costs only what every request does."""


def records(connectors: int) -> Iterator[Record]:
    """Yield the records of a settled group of so many connectors, all of whose tasks run."""
    names = [f"connector-{number:04}" for number in range(connectors)]
    resources = [Resource(name, task) for name in names for task in (-1, *range(TASKS))]
    shares = {member_id(number): frozenset(resources[number::MEMBERS]) for number in range(MEMBERS)}
    for name in names:
        config = {"connector.class": "SparkPipeline", "tasks.max": str(TASKS), "labels": "team=a"}
        yield ConnectorConfig(name, config, time_ms=NOW_MS)
        yield TaskConfigs(name, 1, (TaskConfig({}, 1),) * TASKS)
    yield ConnectorsTasksMetadata(frozenset(resources))
    for number, name in enumerate(shares, 1):
        url = f"h{number:03}:8083/w1"
        yield MemberMetadata(name, "i", number, 60_000, ASSIGNORS, url=url)
        yield GroupMetadata(number, Cause(Why.MEMBER_JOINED, name), NOW_MS)
    yield TargetAssignment(MEMBERS, shares, "balanced")
    for name, share in shares.items():
        held = dict.fromkeys(share, MEMBERS)
        yield CurrentAssignment(name, MEMBERS, 0, MemberState.STABLE, held, {})
    yield from (status(each) for each in resources)


def status(resource: Resource, state: RunState = RunState.RUNNING) -> TaskStatus:
    """Return a status of a task."""
    return TaskStatus(resource, state, "h001:8083/w1", Token(MEMBERS, 1), NOW_MS)


def write(data_dir: Path) -> None:
    """Write the folder of a node."""
    (data_dir / "groups" / "connect").mkdir(parents=True)
    (data_dir / "run").mkdir()
    (data_dir / "run" / "key").touch(0o600)
    (data_dir / "run" / "key").write_bytes(bytes(32))


@contextmanager
def filled(control: Path, connectors: int) -> Generator[GroupLog]:
    """Return the control log of the group, which stays open."""
    with GroupLog.open_writer(control, "connect") as log:
        entries = [encode(each) for each in records(connectors)]
        for start in range(0, len(entries), 1_000):
            log.append(log.end, entries[start : start + 1_000], NOW_MS)
        yield log


class ServedLogs(NamedTuple):
    """A REST process over the logs of a group, to which this process appends."""

    folder: Path
    pid: int
    address: str
    control: GroupLog
    offsets: GroupLog


@contextmanager
def serving(connectors: int, module: str = MODULE) -> Generator[ServedLogs]:
    """Run REST over the logs of a group."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        logs = Path(folder) / "groups" / "connect"
        with (
            filled(logs / "control", connectors) as log,
            GroupLog.open_writer(logs / "offsets", "connect", OFFSETS) as offsets,
            running(Path(folder), "--engine", "noop", module=module) as (process, client),
        ):
            while client.get("/state").status_code != httpx.codes.OK:
                time.sleep(0.1)
            yield ServedLogs(Path(folder), process.pid, str(client.base_url), log, offsets)


def tell_reads(pid: int, address: str, connectors: int) -> None:
    """Print how long reads take, and the CPU time of the process for each."""
    for path, encoding in product(PATHS, ("identity", "gzip")):
        headers = {"Accept-Encoding": encoding}
        tell_read(pid, address, path, headers, f"{connectors} connectors, {encoding}")
        first = answer_of(HTTPConnection(urlsplit(address).netloc), path, headers)
        if tag := first.headers.get("ETag"):
            known = {**headers, "If-None-Match": tag}
            tell_read(pid, address, path, known, f"{connectors} connectors, {encoding}, known")


def tell_read(
    pid: int, address: str, path: str, headers: Mapping[str, str], conditions: str
) -> None:
    """Print the figures of one request, over one connection."""
    connection = HTTPConnection(urlsplit(address).netloc)
    answer_of(connection, path, headers)
    taken: list[float] = []
    before = cpu_seconds(pid)
    for _ in range(READS):
        begun = time.perf_counter()
        answer = answer_of(connection, path, headers)
        taken.append((time.perf_counter() - begun) * 1_000)
    cpu = 1_000 * (cpu_seconds(pid) - before) / READS
    shape = f"{conditions}, {answer.status}, {answer.headers.get('Content-Length', 0)} bytes"
    tell(f"page.read.min {path}", min(taken), "ms", conditions=shape)
    tell(f"page.read.p50 {path}", median(sorted(taken)), "ms", conditions=shape)
    tell(f"page.read.cpu {path}", cpu, "ms", conditions=shape)


def answer_of(connection: HTTPConnection, path: str, headers: Mapping[str, str]) -> HTTPResponse:
    """Send a request and read its whole answer, at the least cost for the machine it shares."""
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    answer.read()
    return answer


def follow(address: str, arrivals: list[float], is_over: threading.Event) -> None:
    """Read a stream, and note when each message has arrived."""
    with (
        suppress(httpx.RemoteProtocolError),  # the process is ended with its streams
        httpx.stream("GET", f"{address}/events", timeout=60) as answer,
    ):
        for line in answer.iter_lines():
            if line == "event: change":
                arrivals.append(time.perf_counter())
            if is_over.is_set():
                return


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def change(log: GroupLog, arrivals: list[float]) -> list[float]:
    """Return how long changes of one task took to arrive, in ms."""
    taken: list[float] = []
    states = (RunState.FAILED, RunState.RUNNING)
    for number in range(CHANGES):
        record = status(Resource("connector-0000", 0), states[number % 2])
        before, begun = len(arrivals), time.perf_counter()
        log.append(log.end, [encode(record)], NOW_MS)
        while len(arrivals) == before and time.perf_counter() < begun + 5:
            time.sleep(0.001)
        taken.append((arrivals[-1] - begun) * 1_000)
        time.sleep(0.1)
    return sorted(taken)


def tell_streams(pid: int, address: str, log: GroupLog) -> None:
    """Print what open streams cost, idle and while a connector changes."""
    arrivals: list[float] = []
    is_over = threading.Event()
    threads = [
        threading.Thread(target=follow, args=(address, each, is_over), daemon=True)
        for each in (arrivals, *([] for _ in range(STREAMS - 1)))
    ]
    for each in threads:
        each.start()
    time.sleep(5)
    before = cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    used = (cpu_seconds(pid) - before) / IDLE_SECONDS
    tell("page.idle_streams.cpu", 100 * used, "% of a core", conditions=OPEN)
    before = cpu_seconds(pid)
    taken = change(log, arrivals)
    cost = (cpu_seconds(pid) - before) / CHANGES
    tell("page.change.p50", median(taken), "ms", conditions=SHAPE)
    tell("page.change.p95", percentile(taken, 0.95), "ms", conditions=SHAPE)
    tell("page.change.cpu", 1_000 * cost, "ms", conditions=OPEN)
    is_over.set()


@contextmanager
def open_streams(address: str) -> Generator[None]:
    """Have streams open that nobody reads; what comes waits in the buffers of their sockets."""
    streams = [HTTPConnection(urlsplit(address).netloc) for _ in range(STREAMS)]
    for each in streams:
        each.request("GET", "/events")
    answers = [each.getresponse() for each in streams]
    yield
    for connection, answer in zip(streams, answers, strict=True):
        answer.close()
        connection.close()


@contextmanager
def changing(log: GroupLog) -> Generator[None]:
    """Have a task fail and run again, ten times a second."""
    is_over = threading.Event()

    def run() -> None:
        states = (RunState.FAILED, RunState.RUNNING)
        for number in count():
            if is_over.wait(CHANGE_SECONDS):
                return
            record = status(Resource("connector-0000", 0), states[number % 2])
            log.append(log.end, [encode(record)], NOW_MS)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    is_over.set()
    thread.join()


def reads_of(address: str, path: str) -> list[float]:
    """Return how long reads over one connection took, in ms, sorted."""
    connection = HTTPConnection(urlsplit(address).netloc)
    answer_of(connection, path, {})
    taken: list[float] = []
    for _ in range(ROUND_READS):
        begun = time.perf_counter()
        answer_of(connection, path, {})
        taken.append((time.perf_counter() - begun) * 1_000)
    connection.close()
    return sorted(taken)


def tell_slower_reads(address: str, path: str, conditions: str) -> None:
    """Print by how much reads are slower beside open streams: the median of the pairs."""
    apart: list[list[float]] = []
    beside: list[list[float]] = []
    for _ in range(ROUNDS):
        apart.append(reads_of(address, path))
        with open_streams(address):
            beside.append(reads_of(address, path))
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        pairs = zip(apart, beside, strict=True)
        more = sorted(
            percentile(longer, share) - percentile(usual, share) for usual, longer in pairs
        )
        without = median(sorted(percentile(each, share) for each in apart))
        shape = f"{OPEN}, {conditions}, {ROUNDS} pairs of {ROUND_READS} reads"
        tell(f"page.streams.slower.{name} {path}", median(more), "ms", conditions=shape)
        tell(f"page.streams.without.{name} {path}", without, "ms", conditions=shape)


def tell_slower(address: str, log: GroupLog) -> None:
    """Print by how much open streams slow other requests, idle and while a connector changes."""
    time.sleep(WATCHED_SECONDS)  # until then who has read the page counts as a stream does
    for path in ("/health/live", LIST):
        tell_slower_reads(address, path, "idle")
        with changing(log):
            tell_slower_reads(address, path, "ten changes a second")


def commits(number: int) -> Iterator[TaskProgress]:
    """Yield a later commit of a task of each connector."""
    for connector in range(CONNECTORS):
        rows = number * (100 + connector)
        last = CommitId(f"connector-{connector:04}", 0, Token(MEMBERS, 1), number)
        at = NOW_MS + number
        lag = Lag(1, 1_000 + number, 10)
        cost = Cost(bytes_in=100 * rows)
        yield TaskProgress(last, number, rows, rows, 100 * rows, at, lag, cost=cost)


def tell_hour() -> None:
    """Print what an hour in which all rows move takes in the REST process, and its messages."""
    with serving(CONNECTORS, quick_hour.MODULE) as served:
        end = time.monotonic() + 1.1 * STEPS * quick_hour.STEP_MS / 1_000
        with open_streams(served.address):
            for number in count(1):
                if time.monotonic() > end:
                    break
                append_commits(served.offsets, number)
                time.sleep(1)
        os.kill(served.pid, signal.SIGUSR1)
        while not (file := served.folder / quick_hour.FILE).exists():
            time.sleep(0.1)
        sizes = json.loads(file.read_text())
    shape = f"{SHAPE}, whose rows move"
    tell("page.hour.memory", (sizes["rings"] + sizes["history"]) / 1e6, "MB", conditions=shape)
    tell("page.messages.memory", sizes["feed"] / 1e6, "MB", conditions=shape)


def append_commits(log: GroupLog, number: int) -> None:
    """Append a commit of each connector."""
    log.append(log.end, [encode(each) for each in commits(number)], NOW_MS + number)


def main() -> None:
    """Print the figures."""
    with serving(FEW_CONNECTORS) as served:
        tell_reads(served.pid, served.address, FEW_CONNECTORS)
    with serving(CONNECTORS) as served:
        tell_reads(served.pid, served.address, CONNECTORS)
        tell_streams(served.pid, served.address, served.control)
        tell_slower(served.address, served.control)
    tell_hour()


if __name__ == "__main__":
    main()
