"""The random schedule of faults in a run, drawn from a seed before it starts, so it can be printed.

`CHAOS_SEED` gives the same schedule again. When the processes come to its points hangs on the
machine, so a run that failed need not fail again, but meets the same faults in the same order.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

POINTS = ("staged", "committed", "publishing", "published")
"""The points of a batch at which its worker may be killed or stopped."""
WEIGHTS = {
    "move": 3,
    "kill worker": 2,
    "kill at": 5,
    "freeze": 1,
    "freeze at": 4,
    "cut at": 1,
    "kill JVM": 2,
    "kill Python": 3,
    "kill group": 2,
    "kill node": 2,
    "kill database": 3,
    "kill broker": 3,
    "fill": 3,
    "fill broker": 3,
}
"""The relative frequency of each fault."""

LASTING = (
    "freeze",
    "freeze at",
    "kill node",
    "kill database",
    "kill broker",
    "fill",
    "fill broker",
)
"""The faults with a duration."""

OF_WORKERS = ("move", "kill worker", "kill JVM", "kill Python", "freeze")
"""The faults of a worker."""


class Step(NamedTuple):
    """One fault, with its duration if it has one."""

    event: str
    pair: str = ""
    """For `kill at`, `freeze at`, `cut at`: the connector."""
    point: str = ""
    worker: str = ""
    seconds: float = 0
    is_awaited: bool = True
    """Whether the next fault waits for recovery; otherwise they overlap."""

    def __str__(self) -> str:
        at = {
            "kill at": f" {self.point} of {self.pair}",
            "freeze at": f" {self.point} of {self.pair}",
            "cut at": f" {self.point} of {self.pair}",
        }
        on = f" {self.worker}" if self.event in OF_WORKERS else ""
        told = f" for {self.seconds:.1f} s" if self.event in LASTING else ""
        return f"{self.event}{at.get(self.event, on)}{told}{'' if self.is_awaited else ', and on'}"


def draw(
    seed: object, pairs: Sequence[str], events: Sequence[str] | None = None, count: int = 0
) -> list[Step]:
    """Draw a schedule: each fault once, in random order, or so many by their weights."""
    dice = random.Random(str(seed))
    chosen = [*events] if events else dice.choices([*WEIGHTS], [*WEIGHTS.values()], k=count)
    if events:
        dice.shuffle(chosen)
    return [
        Step(
            event,
            dice.choice(pairs),
            dice.choice(POINTS),
            dice.choice(("w1", "w2")),
            dice.uniform(0.2, 4),
            dice.random() < 0.7,
        )
        for event in chosen
    ]
