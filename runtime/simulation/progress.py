"""What tasks committed: each row counts once, and who was fenced commits no more."""

from ...events.keys import Key, offset_key
from ...events.model import Token
from ...events.records import Offset, Record, TaskProgress
from .violation import Violation

ROW = "row"


class CommitInvariants:
    """Sees every entry of an offset log; raises `Violation` at the first that goes wrong."""

    def __init__(self) -> None:
        self.commits = 0
        self._rows: dict[Key, int] = {}
        self._tokens: dict[tuple[str, int], Token] = {}

    def saw(self, record: Record | None) -> None:
        """Take note of a record of the offset log."""
        if isinstance(record, Offset):
            key, row = offset_key(record.connector, record.partition), record.offset[ROW]
            expected = self._rows.get(key, 0) + 1
            if row != expected:
                raise Violation(f"7: {key} was committed up to row {row}, {expected} was next")
            self._rows[key] = expected
        elif isinstance(record, TaskProgress):
            self._forward(record)

    def _forward(self, record: TaskProgress) -> None:
        connector, task, token, _ = record.last
        last = self._tokens.get((connector, task))
        if last is not None and token < last:
            raise Violation(f"7: {connector}-{task} committed under {token}, after {last}")
        self._tokens[connector, task] = token
        self.commits += 1
