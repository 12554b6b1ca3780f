"""What a read over REST takes while the REST process reads a long log from its beginning."""

import random
import tempfile
import time
from pathlib import Path
from threading import Thread

import httpx

from fairlead.events.entries.codec import encode
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import RunState, Token
from fairlead.events.records import TaskStatus
from fairlead_tests.benchmarks.figures import median, percentile, tell
from fairlead_tests.benchmarks.groups import history, share
from fairlead_tests.rest.process import running

MEMBERS = 100
ENTRIES = 300_000
BATCH = 1_000
QUIET_READS = 100
SECONDS = 300


def statuses() -> list[NewEntry]:
    """Return what the tasks of a settled group say: that they run."""
    token = Token(MEMBERS, 1)
    return [
        encode(TaskStatus(task, RunState.RUNNING, f"h{number}:8083/w1", token, 0, "batches run"))
        for number in range(MEMBERS)
        for task in share(number)
    ]


def write(data_dir: Path) -> None:
    """Write the log of a settled group whose tasks have said much since."""
    folder = data_dir / "groups" / "connect"
    folder.mkdir(parents=True)
    chance, said = random.Random(0), statuses()
    with GroupLog.open_writer(folder / "control", "connect") as log:
        log.append(0, [encode(record) for record in history(MEMBERS)], 0)
        while log.end < ENTRIES:
            log.append(log.end, chance.choices(said, k=BATCH), 0)
    (data_dir / "run").mkdir()
    (data_dir / "run" / "key").touch(0o600)
    (data_dir / "run" / "key").write_bytes(bytes(32))


def read_ms(client: httpx.Client) -> float:
    """Return how long one read took."""
    begun = time.perf_counter()
    client.get("/groups/connect/config").raise_for_status()
    return (time.perf_counter() - begun) * 1_000


def explain(address: str, took: list[float]) -> None:
    """Have the latest epoch explained, and keep how long that took."""
    begun = time.perf_counter()
    httpx.get(f"{address}/groups/connect/explain/latest", timeout=SECONDS).raise_for_status()
    took.append(time.perf_counter() - begun)


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        with running(Path(folder)) as (_, client):
            read_ms(client)
            quiet = sorted(read_ms(client) for _ in range(QUIET_READS))
            took: list[float] = []
            story = Thread(target=explain, args=(str(client.base_url), took))
            story.start()
            beside: list[float] = []
            while story.is_alive() or not beside:
                beside.append(read_ms(client))
            explain(str(client.base_url), took)
    beside.sort()
    shape = f"{ENTRIES} entries, {MEMBERS} members"
    idle = {"peer": "nothing else asked", "conditions": shape}
    tell("rest.read.beside_explain.p50", median(beside), "ms", peer_value=median(quiet), **idle)
    worst = percentile(quiet, 0.99)
    tell("rest.read.beside_explain.p99", percentile(beside, 0.99), "ms", peer_value=worst, **idle)
    tell("rest.explain.again", took[1], "s", peer="first", peer_value=took[0], conditions=shape)


if __name__ == "__main__":
    main()
