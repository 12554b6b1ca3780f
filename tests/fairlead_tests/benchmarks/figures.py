"""The output of benchmarks: one JSON line for each figure."""

import json
import os
import statistics
import time
from collections.abc import Callable


def tell(
    name: str,
    value: float,
    unit: str,
    *,
    peer: str = "",
    peer_value: float | None = None,
    conditions: str = "",
) -> None:
    """Print one figure, with that of the peer in the same run if there is one."""
    load = os.getloadavg()[0]
    line = {
        "name": name,
        "value": round(value, 4),
        "unit": unit,
        "peer": peer or None,
        "peer_value": None if peer_value is None else round(peer_value, 4),
        "ratio": None if not peer_value else round(value / peer_value, 3),
        "conditions": f"{conditions}; {os.cpu_count()} cores, load {load:.1f}".removeprefix("; "),
    }
    print(json.dumps(line), flush=True)


def times_us(step: Callable[[], object], count: int) -> list[float]:
    """Return how long each of so many calls took, in microseconds, sorted."""
    clock = time.perf_counter_ns
    taken: list[float] = []
    for _ in range(count):
        begun = clock()
        step()
        taken.append((clock() - begun) / 1000)
    return sorted(taken)


def median(values: list[float]) -> float:
    """Return the median of sorted values."""
    return statistics.median(values)


def percentile(values: list[float], share: float) -> float:
    """Return a quantile of sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))]
