# pyright: basic
"""Records that a plugin could not write, until they are dead letters.

Connect tells of them as soon as they fail, and again when they are put again. They become letters
of the batch with which their own one counts: so each is there once, whatever happens in between.
A letter has the row as it was before the plugin's transforms, as what it is read again: a record of
a topic as its bytes, any other row as JSON.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ...spi.rows import RECORD_PLACE, Rejects
from ..running.runs import ErrantRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLACE: Final = {*RECORD_PLACE.values()}
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_LETTER: Final = pa.schema(
    [
        ("position", _TEXTS),
        ("reason", pa.string()),
        ("raw", pa.string()),
        ("format", pa.string()),
        ("context", _TEXTS),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("sent_ms", pa.int64()),
        ("record_headers", _HEADERS),
    ]
)


class ErrantRecords:
    """The errant records of one task."""

    def __init__(
        self, hide: Callable[[str], str], *, is_raw: bool = False, has_keys: bool = False
    ) -> None:
        """Begin without any; `hide` takes secrets out of their reasons.

        `is_raw`: rows are the bytes of records. `has_keys`: their keys are some of their columns.
        """
        self._hide, self._is_raw, self._has_keys = hide, is_raw, has_keys
        self._known: dict[tuple[str, int, int], ErrantRecord] = {}
        self._taken: Sequence[ErrantRecord] = ()
        """Those that count with the batch at work."""
        self._rows = 0
        """How many rows do."""

    def take(self, found: Sequence[ErrantRecord], counts: int, rows: int) -> int:
        """Note what was found; return how many of all are of batches that count.

        Those have so many `rows`.
        """
        self._known.update((each.place, each) for each in found)
        self._taken = [each for each in self._known.values() if each.batch <= counts]
        self._rows = max(rows, len(self._taken))
        return len(self._taken)

    def clear(self) -> None:
        """Forget those that count with the batch at work."""
        for each in self._taken:
            del self._known[each.place]
        self._taken = ()

    @property
    def count(self) -> int:
        """How many count with the batch at work."""
        return len(self._taken)

    def rejects(self, spark: "SparkSession") -> Sequence[Rejects]:
        """Return those that count with the batch at work."""
        if not self._taken:
            return ()
        from ...batches.frames import frame_of  # noqa: PLC0415  # loads Spark's libraries

        letters = [self._letter(each) for each in self._taken]
        frame = frame_of(spark, pa.Table.from_pylist(letters, _LETTER))
        return (Rejects(frame, lambda: len(letters), self._rows),)

    def _letter(self, record: ErrantRecord) -> dict[str, Any]:
        place = dict(zip(RECORD_PLACE, map(str, record.place), strict=True))
        row = _row(record)
        value = row.get("_value") if self._is_raw else None
        return {
            "position": [*place.items()],
            "reason": self._hide(record.reason),
            "raw": _text(value) if self._is_raw else self._json(row),
            "format": ("json" if self._is_raw else "row") if row else None,
            "context": [(name, self._hide(each)) for name, each in record.context.items()],
            "key": _bytes(row.get("_key")),
            "value": value,
            "sent_ms": _millis(row.get("_timestamp")),
            "record_headers": row.get("_headers"),
        }

    def _json(self, row: dict[str, Any]) -> str | None:
        """Return the row that the source had, without its place; None: it is not known."""
        values = {name: each for name, each in row.items() if name not in _PLACE}
        if not values:
            return None
        if self._has_keys:
            key = values.pop("_key")
            if all(each is None for each in values.values()):
                values |= {**key, "__op": "d"}
        return json.dumps(values, default=_plain)


def _row(record: ErrantRecord) -> dict[str, Any]:
    if not record.row:
        return {}
    row: dict[str, Any] = (
        pa.ipc.open_stream(record.row).read_all().to_pylist(maps_as_pydicts="lossy")[0]
    )
    return row


def _millis(value: Any) -> int | None:  # noqa: ANN401  # a number of them, or a time
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def _bytes(value: object) -> bytes | None:
    """Return bytes, or a text's; None for all else."""
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _plain(value: object) -> str:
    """Return a value that JSON has no word for as a text that Spark reads as that value."""
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
