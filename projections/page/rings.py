"""The last hour of some figures of many subjects, in rings of fixed size.

A step is fifteen seconds; 240 of them are an hour. All rings turn together: a step in which nothing
was recorded of a subject is not known, and neither is one in which the process did not run. Six
figures of a thousand connectors take 6 MB.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Final

STEP_MS: Final = 15_000
STEPS: Final = 240
UNKNOWN: Final = math.nan
Values = Sequence[float | None]


class Rings:
    """The last hour of each subject, the same figures of each; times are in milliseconds."""

    def __init__(self, figures: int, began_ms: int) -> None:
        """Begin without a subject; `figures` is how many are recorded of each."""
        self._figures = figures
        self._began_ms = began_ms
        self.step = -1
        """The last step that was recorded, counted from the beginning."""
        self._rings: dict[str, array[float]] = {}
        """The values by subject: the figures of a step stand side by side."""

    def record(self, values: Mapping[str, Values], now_ms: int) -> None:
        """Record the figures of all subjects in the present step; others are dropped."""
        step = max(self.step, (now_ms - self._began_ms) // STEP_MS)
        skipped = range(max(self.step + 1, step - STEPS), step)
        self._rings = {name: self._rings.get(name) or self._empty() for name in values}
        for name, ring in self._rings.items():
            for each in skipped:
                self._put(ring, each, (None,) * self._figures)
            self._put(ring, step, values[name])
        self.step = step

    def times(self, steps: int) -> list[int]:
        """Return when each of the last steps began, the oldest first."""
        return [self._began_ms + each * STEP_MS for each in self._last(steps)]

    def read(self, name: str, steps: int) -> list[list[float | None]]:
        """Return each figure of a subject at the last steps, the oldest first; None: not known."""
        ring = self._rings.get(name) or self._empty()
        places = [each % STEPS * self._figures for each in self._last(steps)]
        return [
            [_known(ring[place + figure]) for place in places] for figure in range(self._figures)
        ]

    def _last(self, steps: int) -> range:
        """Return the numbers of the last steps, as far back as there are any."""
        end = self.step + 1
        return range(max(0, end - min(steps, STEPS)), end)

    def _empty(self) -> "array[float]":
        return array("f", (UNKNOWN,)) * (STEPS * self._figures)

    def _put(self, ring: "array[float]", step: int, values: Values) -> None:
        start = step % STEPS * self._figures
        for place, value in enumerate(values, start):
            ring[place] = UNKNOWN if value is None else value


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)
