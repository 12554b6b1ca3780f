"""Rows and ranges that cannot be processed: how a source or a transform tells them from the rest.

Such a row is left out of the batch, counted, and becomes a dead letter where there is a folder for
them (DATA_PLANE §10).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Rejects:
    """The rows that one stage left out of a batch, and how many there are."""

    frame: "DataFrame"
    """Columns: `position` (map of texts: the file, say), `reason` and `raw`, which are texts.

    It is read only if there are any, in a job of its own, and has to hold the same rows then.
    """

    count: Callable[[], int]
    """Asked for once the batch's own job is over, in which they were counted."""


class LostRange(NamedTuple):
    """One range that cannot be read at all: which, what a user knows it by, and why."""

    range: object
    position: Mapping[str, str]
    reason: str


class Unreadable(BadInput):
    """Ranges that cannot be read, while the rest of the batch can: it goes on without them.

    Not for what may be readable later: that is `SourceAway`, or plain `BadInput`.
    """

    def __init__(self, lost: Sequence[LostRange]) -> None:
        first = lost[0]
        super().__init__(f"{' '.join(first.position.values())}: {first.reason}")
        self.lost = tuple(lost)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What becomes of the rows that are left out of batches."""

    folder: str = ""
    """The dead letter queue; empty: there is none, and they are counted and told."""

    max_ratio: float = 1.0
    """Which part of a batch's rows may be bad."""

    has_headers: bool = False
    """Whether dead letters have the headers that Connect gives them."""

    log: Callable[[str], None] | None = None
    """Takes a line for each bad row; None: they are not logged."""


NOTHING_KEPT: Final = Tolerance()
