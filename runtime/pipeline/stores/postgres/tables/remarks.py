"""Remarks about the tables in the catalog, which are looked up again now and then."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .session import DatabaseSnapshot

_PAUSE_S = 60.0


@dataclass
class CatalogRemarks:
    """The remarks of the last look, as one text; `look` returns those of the present."""

    look: Callable[[DatabaseSnapshot], Sequence[str]]
    text: str = ""
    _at: float = -math.inf
    """The monotonic time of the last look."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to look."""
        return time.monotonic() - self._at >= _PAUSE_S

    def refresh(self, snapshot: DatabaseSnapshot) -> None:
        """ProbeResult, if it is time; raises as the session does."""
        if self.is_due:
            self.text = "; ".join(self.look(snapshot))
            self._at = time.monotonic()
