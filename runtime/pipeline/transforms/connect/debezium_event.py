"""A Debezium event as a row: its envelope, and the extraction of the new row."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from pyspark.sql.types import StructType

from ...engines.spelling import NULL, literal, refusal
from ...spi.config import ConfigInvalid
from .record import Field, fields_in, text

_BEFORE, _AFTER, OPERATION = "before", "after", "op"
_DELETED: Final = "__deleted"
_STRUCTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("id", "total_order", "data_collection_order"), "transaction"),
    **dict.fromkeys((OPERATION, "ts_ms", "ts_us", "ts_ns"), ""),
}
"""The struct of fields without a prefix; others are in `source`; empty: at the top level."""


class Deletes(Enum):
    """The handling of delete events."""

    DROP = "drop"
    TOMBSTONE = "tombstone"
    REWRITE = "rewrite"


class Reference(NamedTuple):
    """A field of the envelope, and its new name."""

    struct: str
    field: str
    name: str

    @classmethod
    def of(cls, written: str, prefix: str) -> "Reference":
        """Parse `field` or `struct.field`, with an optional `:name`."""
        path, _, name = written.partition(":")
        steps = path.split(".")
        if len(steps) == 1:
            struct = _STRUCTS.get(path, "source")
            return cls(struct, path, f"{prefix}{name or path}")
        return cls(steps[0], steps[1], f"{prefix}{name or f'{steps[0]}_{steps[1]}'}")

    def found_in(self, envelope: Mapping[str, Field]) -> Field | None:
        """Return the field; None: events have no such field."""
        struct = envelope.get(self.struct)
        within: Mapping[str, Field] = fields_in(struct) if struct else {}
        return within.get(self.field) or envelope.get(self.field)


class DebeziumEvent:
    """A Debezium event, and the extraction of its row."""

    def __init__(
        self, envelope: Mapping[str, Field], deletes: Deletes, *, keeps_tombstones: bool
    ) -> None:
        """Store the columns of the events; raises `ConfigInvalid` if they have no row."""
        self.envelope = envelope
        self._deletes = deletes
        self._keeps_tombstones = keeps_tombstones
        absent = Field(NULL, StructType())
        self._images = [envelope.get(name, absent) for name in (_AFTER, _BEFORE)]
        if not any(map(fields_in, self._images)):
            kinds = ", ".join(f"{name} is {kind.type.simpleString()}" for name, kind in self._named)
            raise ConfigInvalid(f"neither image of the row has columns: {kinds}; give the schema")

    @property
    def _named(self) -> Iterator[tuple[str, Field]]:
        return zip((_AFTER, _BEFORE), self._images, strict=True)

    @property
    def is_tombstone(self) -> str:
        """The condition of a record without a value."""
        return " AND ".join(f"{each.sql} IS NULL" for each in self.envelope.values())

    @property
    def is_nothing(self) -> str:
        """The condition of a null value; empty: there is none."""
        return f"{self._images[0].sql} IS NULL" if self._deletes is Deletes.TOMBSTONE else ""

    @property
    def where(self) -> str:
        """The condition of the rows to keep; a record that is not an envelope fails the job."""
        after, before = (f"{each.sql} IS NOT NULL" for each in self._images)
        kept = after if self._deletes is Deletes.DROP else f"{after} OR {before}"
        told = refusal(literal("an event is no envelope of Debezium: give a predicate"))
        return (
            f"CASE WHEN {self.is_tombstone} THEN {str(self._keeps_tombstones).lower()} "
            f"WHEN {self.envelope[OPERATION].sql} IS NULL THEN CAST({told} AS BOOLEAN) "
            f"ELSE {kept} END"
        )

    @property
    def row(self) -> Mapping[str, Field]:
        """The fields of the row, with `__deleted` if deletes are rewritten."""
        names = dict.fromkeys(name for each in self._images for name in fields_in(each))
        is_rewritten = self._deletes is Deletes.REWRITE
        after = fields_in(self._images[0])
        found = {name: self.either(name) if is_rewritten else after.get(name) for name in names}
        row = {name: each for name, each in found.items() if each}
        if is_rewritten:
            is_deleted = f"IF({self._images[0].sql} IS NULL, 'true', 'false')"
            row[_DELETED] = text(f"IF({self.is_tombstone}, NULL, {is_deleted})")
        return row

    def either(self, name: str) -> Field | None:
        """Return a field of the new row, or of the old row if there is no new one."""
        after, before = (fields_in(each).get(name) for each in self._images)
        if after is None or before is None:
            return after or before
        old = before.sql
        if before.type != after.type:
            old = f"CAST({old} AS {after.type.simpleString()})"
        return after._replace(sql=f"IF({self._images[0].sql} IS NULL, {old}, {after.sql})")


def is_envelope(columns: Mapping[str, Field]) -> bool:
    """Tell whether columns are those of a Debezium envelope."""
    return OPERATION in columns and not {_AFTER, _BEFORE}.isdisjoint(columns)
