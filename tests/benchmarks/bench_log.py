"""The event log against the disk beneath it.

    python tests/benchmarks/bench_log.py [directory]

An append is measured against a loop that writes as many bytes as LMDB wrote for it, into a file
that grows as fast, with the two flushes that a durable commit takes: one fdatasync for the pages,
one O_DSYNC write for the root. The two take turns, so that both meet the same noise. Prints one
JSON line per result; a ratio above 1 means faster than the peer.
"""

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog

ROUNDS: Final = 30
COMMITS_PER_ROUND: Final = 40
WARM_UP_COMMITS: Final = 300
KEYS: Final = 1_000
READ_ENTRIES: Final = 200_000
PAGE_BYTES: Final = 4_096
ROOT_BYTES: Final = 120
TIME_MS: Final = 1_700_000_000_000


class LogWriter:
    """Appends batches of entries whose values have about 110 bytes."""

    def __init__(self, path: Path, batch: int) -> None:
        self._log = GroupLog.open_writer(path, "bench")
        self._file = path / "data.mdb"
        value = msgspec.msgpack.encode(
            {"member": "m" * 36, "epoch": 7, "assigned": ["flights-1", "flights-2"], "x": "y" * 30}
        )
        self._batches = [
            [
                NewEntry(7, 1, b"worker-%06d" % ((start + at * 37) % KEYS), value)
                for at in range(batch)
            ]
            for start in range(0, KEYS, 11)
        ]
        self._turn = 0

    def commit(self) -> None:
        self._turn += 1
        batch = self._batches[self._turn % len(self._batches)]
        self._log.append(self._log.end, batch, TIME_MS)

    @property
    def end(self) -> int:
        return self._log.end

    def cost(self) -> tuple[int, int]:
        """Return the bytes written, and the growth of the file, per commit."""
        written, size = _bytes_written(), self._file.stat().st_size
        for _ in range(WARM_UP_COMMITS):
            self.commit()
        grown = self._file.stat().st_size - size
        return (_bytes_written() - written) // WARM_UP_COMMITS, grown // WARM_UP_COMMITS

    def close(self) -> None:
        self._log.close()


class DiskWriter:
    """Writes pages, flushes them, and writes a root through to the disk."""

    def __init__(self, path: Path, size: int, growth: int) -> None:
        self._pages = os.open(path, os.O_RDWR | os.O_CREAT)
        self._root = os.open(path, os.O_WRONLY | os.O_DSYNC)
        self._bytes = os.urandom(max(size - ROOT_BYTES, PAGE_BYTES))
        self._growth = growth
        self._at = PAGE_BYTES
        for _ in range(WARM_UP_COMMITS):
            self.commit()

    def commit(self) -> None:
        os.pwrite(self._pages, self._bytes, self._at // PAGE_BYTES * PAGE_BYTES)
        os.fdatasync(self._pages)
        os.pwrite(self._root, self._bytes[:ROOT_BYTES], 0)
        self._at += self._growth

    def close(self) -> None:
        os.close(self._pages)
        os.close(self._root)


def _bytes_written() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def _per_second(commit: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(COMMITS_PER_ROUND):
        commit()
    return COMMITS_PER_ROUND / (time.perf_counter() - began)


def _report(name: str, unit: str, value: float, peer: tuple[str, float, float], note: str) -> None:
    peer_name, peer_value, ratio = peer
    line = {
        "name": name,
        "value": round(value, 1),
        "unit": unit,
        "peer": peer_name,
        "peer_value": round(peer_value, 1),
        "ratio": round(ratio, 2),
        "conditions": f"{note}; {platform.machine()}, {os.cpu_count()} CPUs, load"
        f" {os.getloadavg()[0]:.1f}, Python {platform.python_version()}",
    }
    sys.stdout.write(json.dumps(line) + "\n")


def bench_append(directory: Path, batch: int) -> None:
    """Compare commits of `batch` entries with the bare disk."""
    log = LogWriter(directory / f"log-{batch}", batch)
    log.cost()
    size, growth = log.cost()
    disk = DiskWriter(directory / f"disk-{batch}", size, growth)
    pairs = [(_per_second(log.commit), _per_second(disk.commit)) for _ in range(ROUNDS)]
    log.close()
    disk.close()
    ours, peers = zip(*pairs, strict=True)
    ratio = statistics.median(mine / peer for mine, peer in pairs)
    _report(
        f"append {batch} per commit",
        "commits/s",
        statistics.median(ours),
        ("as many bytes, fdatasync, O_DSYNC write", statistics.median(peers), ratio),
        f"{size} bytes per commit, {growth} of growth, {ROUNDS} rounds in turns, medians",
    )


def bench_read(directory: Path) -> None:
    """Compare reading all entries with msgspec decoding the same values from memory."""
    path = directory / "read"
    log = LogWriter(path, 1_000)
    while log.end < READ_ENTRIES:
        log.commit()
    log.close()
    decode = msgspec.msgpack.Decoder().decode
    ours: list[float] = []
    peers: list[float] = []
    with LogReader.open(path) as reader:
        for _ in range(5):
            began = time.perf_counter()
            entries = reader.read(0).entries
            ours.append(len(entries) / (time.perf_counter() - began))
            values = [entry.value for entry in entries if entry.value is not None]
            began = time.perf_counter()
            for value in values:
                decode(value)
            peers.append(len(values) / (time.perf_counter() - began))
    mine, bare = statistics.median(ours), statistics.median(peers)
    peer = ("msgspec decode of the values alone", bare, mine / bare)
    _report("read", "records/s", mine, peer, f"{READ_ENTRIES} entries, 5 rounds")


def main(directory: Path | None = None) -> None:
    with tempfile.TemporaryDirectory(dir=directory or Path.cwd()) as scratch:
        for batch in (1, 100):
            bench_append(Path(scratch), batch)
        bench_read(Path(scratch))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
