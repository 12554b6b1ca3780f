"""At most so many moves in any interval, whatever else calls for a target in between.

What was spent goes with the target as the assignor's metadata, and comes back with the next
snapshot: `{"moves":7,"at_ms":1700000000000}`. It counts until a whole interval has passed
since the last move. So no interval, wherever it begins, has more moves than the budget, and
a worker that comes while moves are still to be made finds the rest of the budget, not a new
one. Each round puts off the next only by moving something: all that is left is moved in the
end.
"""

import json
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class Spent:
    """So many moves were made, the last of them then (wall clock, in milliseconds)."""

    moves: int = 0
    at_ms: int = 0

    def written(self) -> bytes:
        """Return it as metadata; nothing where nothing was spent."""
        document = {"moves": self.moves, "at_ms": self.at_ms}
        return json.dumps(document, separators=(",", ":")).encode() if self.moves else b""


NOTHING_SPENT = Spent()


def spent(metadata: bytes, now_ms: int, interval_ms: int) -> Spent:
    """Return what of the budget is spent now; metadata that nobody wrote here says nothing.

    A clock that was set back a little makes it no older than now; set back by an interval or
    more, it makes it a thing of the past, so that nothing waits for that time to come again.
    """
    try:
        document: object = json.loads(metadata) if metadata else None
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested beyond reason
        return NOTHING_SPENT
    if not isinstance(document, dict):
        return NOTHING_SPENT
    said = cast("dict[str, object]", document)
    moves, at_ms = said.get("moves"), said.get("at_ms")
    if type(moves) is not int or type(at_ms) is not int or moves <= 0:
        return NOTHING_SPENT
    is_near = abs(now_ms - at_ms) < interval_ms
    return Spent(moves, min(at_ms, now_ms)) if is_near else NOTHING_SPENT
