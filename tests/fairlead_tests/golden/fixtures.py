"""Golden logs as files: the bytes of every entry, and the resulting state as text.

`<life>.control`, and `<life>.offsets` if there are any, hold one entry a line: offset, time,
type, version, key, and the value's msgpack bytes in base64 (null for a tombstone).
`<life>.state` is the resulting state as JSON. Below the top level it omits values at their
default, so that a new field with a default does not change the state file of an old log.
"""
# pyright: basic

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from fairlead.events.catalogue import key_of
from fairlead.events.entries.codec import decode, fold
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry
from fairlead.events.model import Succession
from fairlead.events.record_parts import RecordParts
from fairlead.events.records import HEADS, ConnectorConfig
from fairlead_tests import TESTS

FOLDER = TESTS / "golden"
AS_TOLD: Mapping[tuple[type, str], str] = {
    (Group, "target_of"): "shares",
    (Group, "owner"): "holders",
    (Group, "target_owner"): "heirs",
    (Group, "record_parts"): "log_shards",
    (RecordParts, "by_head"): "rows",
    **dict.fromkeys([(head, "parts") for head in HEADS], "shards"),
}
"""The names in state files of fields that were renamed since: the files never change."""
ALWAYS_TOLD = {(ConnectorConfig, "version"), (ConnectorConfig, "time_ms")}
"""Fields that had no default when the state files were written."""


def generations() -> list[Path]:
    """Return the folders of the golden logs, the oldest first."""
    return sorted((each for each in FOLDER.iterdir() if each.name.isdigit()), key=_number)


def _number(folder: Path) -> int:
    return int(folder.name)


def to_lines(entries: Iterable[Entry]) -> str:
    """Return entries as text."""
    rows = (
        (
            entry.offset,
            entry.timestamp_ms,
            entry.type,
            entry.version,
            entry.key.decode(),
            None if entry.value is None else b64encode(entry.value).decode(),
        )
        for entry in entries
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def read_lines(path: Path) -> list[Entry]:
    """Return the entries of a golden log; none if there is no such log."""
    if not path.exists():
        return []
    return [_entry(*json.loads(line)) for line in path.read_text().splitlines()]


def _entry(
    offset: int, time_ms: int, kind: int, version: int, key: str, value: str | None
) -> Entry:
    packed = None if value is None else b64decode(value)
    return Entry(offset, kind, version, key.encode(), time_ms, packed)


def to_text(state: object) -> str:
    """Return a state as the text of its file."""
    return json.dumps(state, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def state_of(control: Iterable[Entry], offsets: Iterable[Entry]) -> dict[str, Any]:
    """Return the state of a group from both logs."""
    group = Group("connect")
    fold(group, control)
    latest = {(entry.type, entry.key): decode(entry) for entry in offsets if entry.value}
    for entry in offsets:
        if entry.value is None:
            latest.pop((entry.type, entry.key), None)
    kept = {
        f"{type(each).__name__} {key_of(each)}": plain(each) for each in latest.values() if each
    }
    return {"group": plain_group(group), "offsets": kept}


def plain_group(group: Group) -> dict[str, Any]:
    """Return every field of a group, the indexes included."""
    return {_as_told(Group, each.name): plain(getattr(group, each.name)) for each in fields(Group)}


def plain(value: Any) -> Any:
    """Return a value as plain data."""
    if isinstance(value, Succession):  # a tuple in the first state files
        return [value.returns, value.target_id, value.assignment_epoch]
    if is_dataclass(value):
        told = {each.name: getattr(value, each.name) for each in fields(value)}
        return {
            _as_told(type(value), each.name): plain(told[each.name])
            for each in fields(value)
            if (type(value), each.name) in ALWAYS_TOLD or told[each.name] != _default(each)
        }
    if isinstance(value, Mapping):
        return {_name(key): plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return _scalar(value)


def _as_told(kind: type, field: str) -> str:
    return AS_TOLD.get((kind, field), field)


def _name(key: Any) -> str:
    if type(key) is not tuple:  # a resource has its own text form
        return str(key)
    return "/".join(map(str, key))


def _scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.name
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _default(field: "Field[Any]") -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
