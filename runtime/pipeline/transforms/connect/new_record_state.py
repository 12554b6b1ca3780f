"""Debezium's ExtractNewRecordState: extracts the new row from a change event.

Name, keys and meanings are those of Debezium 3's own class, with the keys by which older releases
handled deletes and tombstones. Events have the columns of Debezium's envelope: `before`, `after`,
`op`, `source`, `ts_ms`, whether their schemas came with them or not. What differs, and why:

* Rows of one batch have the same columns: an event that is no envelope among others that are, a
  heartbeat or a change of a schema, ends the job. Give the transform a predicate. If none is one,
  they pass, as they do there.
* A row that becomes a tombstone needs the column `_key`, which tells what is gone.
* No column can be left out of some rows, and a null in its place would be a value that it has not:
  `drop.fields.header.name` is refused.
* A struct that events lack has no fields to add; Debezium's class fails.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from pyspark.sql.types import StringType, StructType

from .....actors.settings import Validator, Value
from ...engines.spelling import NULL, literal, refusal
from ...spi.config import ConfigDef, ConfigInvalid, Definition, Importance, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import flag_key, list_key, text_key
from .fields import NULL_DEFAULTS
from .metadata import header_text, with_headers
from .record import KEY, TOPIC, ConnectRecord, Field, RecordPart, fields_in, text, unless
from .record_transform import RecordTransform

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
    """Return whether columns are those of a Debezium envelope."""
    return OPERATION in columns and not {_AFTER, _BEFORE}.isdisjoint(columns)


_MODE, _OLD_MODE = "delete.tombstone.handling.mode", "delete.handling.mode"
_OLD_TOMBSTONES, _DROPPED_FIELDS = "drop.tombstones", "drop.fields.header.name"
_HANDLING: Final[Mapping[str, tuple[Deletes, bool]]] = {
    "drop": (Deletes.DROP, False),
    "tombstone": (Deletes.TOMBSTONE, False),
    "rewrite": (Deletes.REWRITE, False),
    "rewrite-with-tombstone": (Deletes.REWRITE, True),
    "delete-to-tombstone": (Deletes.TOMBSTONE, False),
}
"""The handling of deletes, and whether tombstones are kept, by mode."""
_OLD_HANDLING: Final[Mapping[str, Deletes]] = {
    "drop": Deletes.DROP,
    "rewrite": Deletes.REWRITE,
    "none": Deletes.TOMBSTONE,
}


class ExtractNewRecordState(RecordTransform):
    """Extracts the new row from a change event."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: deletes, fields to add from the envelope, and the topic."""
        return ConfigDef((*_delete_keys(), *_added_keys(), *_other_keys(), NULL_DEFAULTS))

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Refuse `drop.fields.header.name`, since a column cannot be missing in some rows."""
        if not settings.text(_DROPPED_FIELDS).strip():
            return {}
        reason = "no column can be left out of some rows: use ReplaceField, or leave this key out"
        return {_DROPPED_FIELDS: reason}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._deletes, self._keeps_tombstones = _handling(settings)
        self._fields, self._headers = (
            [
                Reference.of(each, settings.text(f"add.{what}.prefix"))
                for each in settings.items(f"add.{what}")
            ]
            for what in ("fields", "headers")
        )
        self._route = settings.text("route.by.field")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Extract the row from the envelope."""
        envelope = record.value
        if not envelope and KEY in record.columns:  # a batch of tombstones alone
            return record if self._keeps_tombstones else record.only_where("false")
        if not is_envelope(envelope):
            return record
        if self._deletes is Deletes.TOMBSTONE and KEY not in record.columns:
            raise ConfigInvalid(
                f"a delete becomes a tombstone, which needs the column {KEY}: have the source give "
                f"it, or set {_MODE} to rewrite or drop"
            )
        event = DebeziumEvent(envelope, self._deletes, keeps_tombstones=self._keeps_tombstones)
        routed = self._with_headers(self._with_topic(record, event), event)
        fields = {**event.row, **dict(self._added(event))}
        return routed.with_fields(RecordPart.VALUE, fields).only_where(event.where)

    def _added(self, event: DebeziumEvent) -> Iterator[tuple[str, Field]]:
        names = dict.fromkeys(event.row)
        for each in self._fields:
            if found := each.found_in(event.envelope):
                if each.name in names:
                    raise ConfigInvalid(f"the record has a field {each.name} already")
                names[each.name] = None
                yield each.name, unless(event.is_nothing, found)

    def _with_headers(self, record: ConnectRecord, event: DebeziumEvent) -> ConnectRecord:
        """Add headers from the envelope; a tombstone only gets the operation."""
        headers = [
            (literal(each.name), header_text(field))
            for each in self._headers
            if (field := each.found_in(event.envelope))
        ]
        if not self._keeps_tombstones:
            return with_headers(record, headers) if headers else record
        deletes = [(literal(each.name), "'d'") for each in self._headers if each.field == OPERATION]
        if deletes:
            record = with_headers(record, deletes, event.is_tombstone)
        return with_headers(record, headers, f"NOT ({event.is_tombstone})") if headers else record

    def _with_topic(self, record: ConnectRecord, event: DebeziumEvent) -> ConnectRecord:
        if not self._route:
            return record
        found = event.either(self._route)
        if found is None or not isinstance(found.type, StringType):
            kind = "there is none" if found is None else f"it is {found.type.simpleString()}"
            raise ConfigInvalid(f"{self._route} is to name the topic, as a text, but {kind}")
        old = record.columns.get(TOPIC)
        named = f"IF(trim({found.sql}) = '', NULL, {found.sql})"
        return record.with_metadata(TOPIC, text(f"coalesce({named}, {old.sql if old else NULL})"))


def _handling(settings: ParsedConfig) -> tuple[Deletes, bool]:
    """Return the handling of deletes, and whether tombstones are kept."""
    if mode := settings.text(_MODE):
        return _HANDLING[mode.lower()]
    old, drops = settings.text(_OLD_MODE), settings.text(_OLD_TOMBSTONES)
    if not (old or drops):
        return _HANDLING["tombstone"]
    return _OLD_HANDLING[old.lower() or "drop"], drops.lower() == "false"


def _delete_keys() -> Sequence[Definition]:
    return (
        text_key(
            _MODE,
            "What becomes of deletes: `drop` leaves them out; `tombstone`, the default, and "
            "`delete-to-tombstone` make them tombstones; `rewrite` and `rewrite-with-tombstone` "
            "give the row before, and all rows a column `__deleted`. Tombstones stay with "
            "`rewrite-with-tombstone` alone.",
            validator=_one_of(*_HANDLING),
            recommended=tuple(_HANDLING),
        ),
        text_key(
            _OLD_MODE,
            f"As Debezium 2 has it, where `{_MODE}` is not given: `drop`, `rewrite`, or `none`, "
            "which makes tombstones.",
            importance=Importance.LOW,
            validator=_one_of(*_OLD_HANDLING),
            recommended=tuple(_OLD_HANDLING),
        ),
        text_key(
            _OLD_TOMBSTONES,
            f"As Debezium 2 has it, where `{_MODE}` is not given: whether tombstones are left out.",
            importance=Importance.LOW,
            validator=_one_of("true", "false"),
            recommended=("true", "false"),
        ),
    )


def _added_keys() -> Iterator[Definition]:
    for what, whose in (("fields", "column"), ("headers", "header")):
        yield list_key(
            f"add.{what}",
            f"What becomes a {whose}, if events have it: `op`, `ts_ms`, `table` (of `source`), "
            "`transaction.id`; `lsn:position` gives it that name.",
            importance=Importance.LOW,
            validator=_references,
        )
        yield text_key(
            f"add.{what}.prefix",
            f"What their names begin with: `__source_ts_ms` is the {whose} of `source.ts_ms`.",
            "__",
            importance=Importance.LOW,
        )


def _other_keys() -> Sequence[Definition]:
    return (
        text_key(
            "route.by.field",
            "The field of the row that names the topic. Empty: the topic stays.",
            importance=Importance.LOW,
        ),
        text_key(
            _DROPPED_FIELDS,
            "Refused: no column can be left out of some rows.",
            importance=Importance.LOW,
        ),
        *(
            flag_key(
                f"drop.fields.{what}",
                f"Goes with `{_DROPPED_FIELDS}`, and means nothing without it.",
                default=default,
                importance=Importance.LOW,
            )
            for what, default in (("from.key", False), ("keep.schema.compatible", True))
        ),
    )


def _one_of(*values: str) -> Validator:
    """Return a case-insensitive validator, as in Debezium."""

    def validate(value: Value) -> str | None:
        is_known = not value or str(value).lower() in values
        return None if is_known else f"must be one of {', '.join(values)}"

    return validate


def _references(value: Value) -> str | None:
    items = value if isinstance(value, tuple) else ()
    wrong = next((each for each in items if not each or each.count(":") > 1), None)
    return None if wrong is None else f"{wrong!r} is none of the form `field` or `field:name`"
