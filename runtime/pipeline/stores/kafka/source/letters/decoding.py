# pyright: basic, reportAttributeAccessIssue=false
"""Decodes the dead letters in a topic to the rows that they were.

A letter of a record of Kafka becomes that record again, and is decoded as its source decodes it. A
letter with another text of its source, or with a row as JSON, is read as one of a folder. What was
lost is not guessed: such a letter is refused with the reason, and keeps all that it had.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .....batches.frames import frame_of
from .....spi.rows import Rejects
from ....files.letters.rows import NOT_KEPT, ROW, LetterRows
from ..bad_records import as_text, with_records
from ..decoding import KafkaRows, RecordDecoder
from ..reader import HEADER_FLAW, HEADERS
from .mark import place_of, read_letter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LETTER: Final = pa.schema(
    [
        ("position", pa.map_(pa.string(), pa.string())),
        ("raw", pa.string()),
        ("format", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("sent_ms", pa.int64()),
        ("record_headers", HEADERS),
    ]
)
"""The columns of a letter, and of one that is refused again beside the reason."""
_RECORD: Final = pa.schema(
    [
        ("_value", pa.binary()),
        ("_key", pa.binary()),
        ("_topic", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", pa.timestamp("ms", tz="UTC")),
        ("_headers", HEADERS),
        (HEADER_FLAW, pa.string()),
    ]
)
"""The columns of a record as it is read, but its time, which is in microseconds there."""
_UNMARKED: Final = (
    "cannot be retried: no header says how it is read again, since another program or an earlier "
    "version wrote it"
)
_NO_PLACE: Final = "cannot be retried: its headers do not say which record it was"
_TWICE: Final = "cannot be retried: another letter of its batch has the same record"


class LetterDecoder(RecordDecoder):
    """Decodes the letters of one connector; those of others are left out."""

    def __init__(self, rows: KafkaRows, texts: LetterRows, records: RecordDecoder | None) -> None:
        """Start with the reader of texts and the decoder of records, None: all are texts."""
        super().__init__(rows)
        self._texts = texts
        self._records = records
        self._refused: Sequence[Rejects] = ()
        """The letters of the last batch that were not restored, or whose texts are bad."""
        self._restored: pa.Table | None = None
        """The records of the last batch; None: there were none."""

    @property
    def separates_bad_rows(self) -> bool:
        """Whether the rows may be fewer than the records: letters of others are among them."""
        return True

    @property
    def keeps_records(self) -> bool:
        """Whether bad records get their keys and values: they have them already."""
        return False

    @property
    def remark(self) -> str:
        """Return the remark of the decoder of records."""
        return self._records.remark if self._records else ""

    def rejects(self) -> Sequence[Rejects]:
        """Return the letters of the last batch that are refused again."""
        if self._records is None or self._restored is None:
            return self._refused
        found, records = self._records.rejects(), self._restored
        bad = (with_records(each, records) if each.count() else each for each in found)
        return [*self._refused, *bad]

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame":
        """Return the rows of letters."""
        letters = own_letters(self._texts.connector, table)
        reasons = flaws_in(letters, are_records=self._records is not None)
        is_record = pc.and_(self._records is not None, pc.not_equal(letters["format"], ROW))
        is_sound = pa.array([each not in reasons for each in range(letters.num_rows)], pa.bool_())
        texts = letters.filter(pc.and_(is_sound, pc.invert(is_record)))
        records = letters.filter(pc.and_(is_sound, is_record))
        frame, refused = self._texts.restore(spark, texts.select(_LETTER.names[:4]))
        self._refused, self._restored = [*_refuse(spark, letters, reasons), *refused], None
        if self._records is None or not records.num_rows:
            return frame
        self._restored = restore_records(records)
        found = self._records.decode(spark, self._restored)
        if isinstance(found, pa.Table):
            held: Any = found
            found = frame_of(spark, held)
        return found.unionByName(frame, allowMissingColumns=True) if texts.num_rows else found


def own_letters(connector: str, table: pa.Table) -> pa.Table:
    """Return the records of a topic that are letters of a connector, with what restoring needs.

    A letter without a mark has no `sent_ms`, no `format`, and an `unmarked` that is true.
    """
    found = [read_letter(each or ()) for each in table["_headers"].to_pylist()]
    own = [number for number, each in enumerate(found) if each.connector == connector]
    letters, mine = [found[number] for number in own], table.take(pa.array(own, pa.int64()))
    marks = [each.mark for each in letters]
    columns = {
        "position": [[*each.position.items()] for each in letters],
        "raw": as_text(mine["_value"]),
        "format": [mark and mark.format for mark in marks],
        "columns": [mark and mark.columns for mark in marks],
        "key": mine["_key"],
        "value": mine["_value"],
        "sent_ms": [mark and mark.sent_ms for mark in marks],
        "record_headers": [[*each.headers] for each in letters],
    }
    known = pa.table(columns, schema=_LETTER)
    return known.append_column("unmarked", pa.array([each is None for each in marks], pa.bool_()))


def flaws_in(letters: pa.Table, *, are_records: bool) -> Mapping[int, str]:
    """Return why letters cannot be retried, by their numbers.

    `are_records`: all that are no rows were records of Kafka. The flaws of texts are told when
    they are read.
    """
    flaws: dict[int, str] = {}
    places: set[object] = set()
    kept = letters.select(["unmarked", "format", "position"]).to_pylist()
    for number, letter in enumerate(kept):
        flaw = _flaw(letter)
        if not flaw and are_records and letter["format"] != ROW:
            place = place_of(dict(letter["position"]))
            flaw = _NO_PLACE if place is None else _TWICE if place in places else ""
            places.add(place)
        if flaw:
            flaws[number] = flaw
    return flaws


def restore_records(letters: pa.Table) -> pa.Table:
    """Return the records that letters were, as they were read."""
    places = [place_of(dict(each)) or ("", 0, 0) for each in letters["position"].to_pylist()]
    topics, partitions, offsets = zip(*places, strict=True)
    columns = {
        "_value": letters["value"],
        "_key": letters["key"],
        "_topic": topics,
        "_partition": partitions,
        "_offset": offsets,
        "_timestamp": letters["sent_ms"].cast(_RECORD.field("_timestamp").type),
        "_headers": letters["record_headers"],
        HEADER_FLAW: pa.nulls(len(places), pa.string()),
    }
    records = pa.table(columns, schema=_RECORD)
    at = records.column_names.index("_timestamp")
    in_us = records["_timestamp"].cast(pa.timestamp("us", tz="UTC"))
    return records.set_column(at, "_timestamp", in_us)


def _flaw(letter: Mapping[str, Any]) -> str:
    if letter["unmarked"]:
        return _UNMARKED
    return NOT_KEPT if letter["format"] is None else ""


def _refuse(
    spark: "SparkSession", letters: pa.Table, reasons: Mapping[int, str]
) -> Sequence[Rejects]:
    """Return letters, given by number with the reason, as rejects."""
    if not reasons:
        return ()
    part = letters.take(pa.array(reasons, pa.int64())).drop_columns(["unmarked"])
    part = part.append_column("reason", pa.array(reasons.values(), pa.string()))
    return [Rejects(frame_of(spark, part), lambda: len(reasons))]
