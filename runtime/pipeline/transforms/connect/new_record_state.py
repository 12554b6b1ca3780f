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
from typing import Final

from pyspark.sql.types import StringType

from .....actors.settings import Validator, Value
from ...engines.spelling import NULL, literal
from ...spi.config import ConfigDef, ConfigInvalid, Definition, Importance, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import flag_key, list_key, text_key
from .debezium_event import OPERATION, DebeziumEvent, Deletes, Reference, is_envelope
from .fields import NULL_DEFAULTS
from .metadata import header_text, with_headers
from .record import KEY, TOPIC, ConnectRecord, Field, RecordPart, text, unless
from .record_transform import RecordTransform

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
