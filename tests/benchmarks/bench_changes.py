"""What one connector more or less costs beside many: bytes of the control log, and the time.

All that follows is counted: targets, steps of both workers, statuses. The coordinator, its log
and its assignor are the real ones, the two members are played.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fairlead_tests.benchmarks.figures import median, tell
from fairlead_tests.coordination.settled_group import SettledGroup

BESIDE = (300, 3_000)
CHANGES = 20


def measured(driver: SettledGroup, change: Callable[[str], None]) -> tuple[float, float]:
    """Return the bytes and the milliseconds of a change, at the median of some."""
    costs: list[float] = []
    taken: list[float] = []
    for number in range(CHANGES):
        name = f"another.{number}"
        begun = time.perf_counter()
        costs.append(driver.cost(lambda: change(name)))  # noqa: B023
        taken.append((time.perf_counter() - begun) * 1_000)
    return median(costs), median(taken)


def main() -> None:
    """Print the figures."""
    for count in BESIDE:
        with tempfile.TemporaryDirectory() as folder:
            driver = SettledGroup.with_connectors(Path(folder), count)
            shape = f"beside {count} connectors of one task on 2 workers"
            for name in ("create", "delete"):
                size, taken_ms = measured(driver, getattr(driver, name))
                tell(f"changes.{name}.{count}.log", size, "bytes", conditions=shape)
                tell(f"changes.{name}.{count}.time", taken_ms, "ms", conditions=shape)
            driver.close()


if __name__ == "__main__":
    main()
