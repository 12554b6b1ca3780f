"""How a benchmark tells its figures: one JSON line each."""

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
    """Print one figure, beside its peer's of the same run where there is one."""
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
    """Return the middle one."""
    return statistics.median(values)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which that share of the sorted values lies."""
    return values[min(len(values) - 1, int(len(values) * share))]
