"""How large the next batch may be: as large as it can be and still end soon.

A revocation waits for the batch in flight, so its length bounds how long a move takes.
"""

from ..connectors.spi import Limit

_SMALL = Limit(8, 4 << 20)
"""Never less: below this a batch's fixed cost outweighs what a smaller one would save."""
_QUICK_S = 1.0
_SLOW_S = 2.0


class BatchSize:
    """The limit of a task's next batch, within the ceiling that its config sets."""

    def __init__(self, ceiling: Limit) -> None:
        self._ceiling = ceiling
        self.limit = _within(_SMALL, ceiling)
        """How much the next batch may hold."""

    def learn(self, seconds: float, *, backlog: bool) -> None:
        """Double after a quick batch with more behind it; halve after a slow one."""
        files, size = self.limit
        if seconds > _SLOW_S:
            halved = Limit(max(files // 2, _SMALL.files), max(size // 2, _SMALL.bytes))
            self.limit = _within(halved, self._ceiling)
        elif backlog and seconds < _QUICK_S:
            self.limit = _within(Limit(files * 2, size * 2), self._ceiling)


def _within(limit: Limit, ceiling: Limit) -> Limit:
    return Limit(max(1, min(limit.files, ceiling.files)), max(1, min(limit.bytes, ceiling.bytes)))
