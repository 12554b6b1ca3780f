"""What a message through the transport costs, beside stock Thespian in the same run.

    python tests/benchmarks/bench_transport.py

Each side runs in a process of its own, in turns, and the median of the turns counts. Prints
one JSON line per measurement.
"""

import importlib
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fairlead_tests import TESTS

TURNS = 3
ASKS = 500
PINGS = 800
BATCH = 100


@dataclass(frozen=True, slots=True)
class Beat:
    """A small value, about the size of a heartbeat."""

    group: str
    member: str
    epoch: int
    owned: tuple[str, ...]


def beats() -> list[Beat]:
    """A batch of small values."""
    return [Beat("connect", f"W{n}", n, ("flights-0", "flights-1")) for n in range(BATCH)]


def as_bytes(batch: list[Beat]) -> bytes:
    """A batch as its sender would pack it."""
    return msgspec.msgpack.encode(batch)


def median_us(action: Callable[[], object], count: int) -> float:
    """The median duration of an action."""
    spent = list[float]()
    for _ in range(count):
        began = time.perf_counter()
        action()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e6


def measure(side: str) -> dict[str, float]:
    """Measure one side."""
    library: Any = importlib.import_module(f"fairlead_tests.benchmarks.{side}")
    batch, packed = beats(), as_bytes(beats())
    with tempfile.TemporaryDirectory() as folder, library.running(Path(folder)) as system:
        echo, pinger = system.create(library.Echo), system.create(library.Pinger)
        for actor in (echo, pinger):
            system.ask(actor, library.Run(echo, 20, b"warm up"), 30)

        def ask(message: object) -> None:
            assert system.ask(echo, message, 30) is not None

        return {
            "transport_ask_round_trip_us": median_us(lambda: ask(b"x" * 200), ASKS),
            "transport_actor_requests_per_s": PINGS
            / system.ask(pinger, library.Run(echo, PINGS, b"x" * 200), 60),
            "transport_batch_of_100_dataclasses_us": median_us(lambda: ask(batch), ASKS),
            "transport_batch_of_100_as_bytes_us": median_us(lambda: ask(packed), ASKS),
        }


def turn(side: str) -> dict[str, float]:
    """Measure one side in a process of its own."""
    ran = subprocess.run(
        [sys.executable, __file__, side],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict[str, float](json.loads(ran.stdout))


def line(name: str, value: float, peer: str, peer_value: float, conditions: str) -> str:
    """One measurement as the benchmarks print it."""
    unit = "1/s" if name.endswith("_per_s") else "us"
    ratio = round(value / peer_value, 3)
    shown = {"name": name, "value": round(value, 1), "unit": unit, "peer": peer}
    shown |= {"peer_value": round(peer_value, 1), "ratio": ratio, "conditions": conditions}
    return json.dumps(shown)


def main() -> None:
    """Run all and print."""
    turns = [(turn("transport_ours"), turn("transport_stock")) for _ in range(TURNS)]
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, median of {TURNS} turns"
    for name in turns[0][0]:
        ours, stock = (statistics.median(each[side][name] for each in turns) for side in (0, 1))
        print(line(name, ours, "stock multiprocTCPBase", stock, load))
    batch = beats()
    plain = median_us(lambda: pickle.loads(pickle.dumps(batch, 5)), ASKS)
    packer = msgspec.msgpack.Decoder(list[Beat])
    packed = median_us(lambda: packer.decode(pickle.loads(pickle.dumps(as_bytes(batch), 5))), ASKS)
    print(line("transport_100_packed_and_unpacked_us", packed, "pickled dataclasses", plain, load))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.modules["bench_transport"] = sys.modules["__main__"]
        Beat.__module__ = "bench_transport"  # so that every actor can load it
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
