"""Access to a group's logs on disk: reading, backup, and printing of entries."""

import shutil
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, cast

from .....events.catalogue import BY_NUMBER, TYPE_OF
from .....events.entries.codec import CONTROL, OFFSETS, CodecError, decode
from .....events.entries.group_keys import SHARED_CONTROL, SHARED_OFFSETS
from .....events.log.errors import BackupError, LogError, NoLogError
from .....events.log.files import sync_path
from .....events.log.frame import Entry
from .....events.log.reader import LogReader
from .....events.log.tables import LogKind
from .....events.model import Resource, Token
from .....events.records import ClassicGroup, MemberMetadata, Record, Tombstone
from .....projections.shard_history import GroupEntries, ShardHistory
from ....cluster.data_version import NewerDataError, require_known_data
from ..output.phrases import format_time
from ..output.printing import Failed, Output, format_json, format_yaml, say
from ..requests.options import LocalOptions
from .narrator import Narrator

FOLLOW_SECONDS: Final = 0.2
KIND_WIDTH: Final = max(len(row.name) for row in BY_NUMBER.values())
OFFSET_WIDTH: Final = 6

Printer = Callable[[Entry], None]


class LogName(StrEnum):
    """The two logs of a group; the values are the names of their folders."""

    CONTROL = "control"
    OFFSETS = "offsets"

    @property
    def kind(self) -> LogKind:
        """The kind of a log with this name of a group of workers."""
        return CONTROL if self is LogName.CONTROL else OFFSETS

    @property
    def shared(self) -> LogKind:
        """The kind of a log with this name that groups of Kafka clients share."""
        return SHARED_CONTROL if self is LogName.CONTROL else SHARED_OFFSETS


BACKED_UP: Final = (LogName.OFFSETS, LogName.CONTROL)
"""The logs of a backup, in the order of copying."""

GroupReader = LogReader | GroupEntries
"""A group's own log, or its entries in a shared log."""


class GroupFolder:
    """The folder of one group, with its logs `control` and `offsets`."""

    def __init__(self, options: LocalOptions) -> None:
        config = options.load_config()
        self.group_id = config.group_id
        self.path = config.group_folder
        self._data_path = config.data_path
        self._shards = config.data_path / "shards"

    def locate(self, name: LogName) -> Path:
        """Return the folder of a log."""
        return self.path / name.value

    def read(self, name: LogName) -> GroupReader:
        """Open the group's own log, or its entries in a shard's log, to decode them.

        Raises `LogError`, and `Failed` if a newer version may have written them.
        """
        try:
            require_known_data(self._data_path)
        except NewerDataError as error:
            raise Failed(str(error)) from None
        if not self.locate(name).is_dir():
            for each in sorted(self._shards.glob(f"*/{name.value}")):
                log = LogReader.open(each, kind=name.shared)
                history = ShardHistory(log).catch_up()
                if history.knows(self.group_id):
                    return GroupEntries(log, self.group_id, history)
                log.close()
        return self.open(name)

    def open(self, name: LogName) -> LogReader:
        """Open the group's own log; raises `LogError`."""
        path = self.locate(name)
        if not path.is_dir():
            raise NoLogError(
                f"there is no log at {path}: `fairlead up` makes it; or is it another --data-dir,"
                " or another group.id?"
            )
        return LogReader.open(path, self.group_id, name.kind)

    def shards(self) -> list[Path]:
        """Return the folders of the shards, each with the logs of many groups, in order."""
        found = (each for each in self._shards.glob("*/") if each.name.isdecimal())
        return sorted(found, key=lambda each: int(each.name))

    def back_up(self, target: Path) -> list[LogName]:
        """Copy the logs into a new folder, all or nothing; raises `LogError`.

        The offset log is copied first: so the copy of the control log has all that it refers to.
        """
        done = [each for each in BACKED_UP if each is LogName.CONTROL or self.locate(each).is_dir()]
        _copy(target, ((each.value, partial(self.open, each)) for each in done))
        return done

    def back_up_shards(self, target: Path) -> list[Path]:
        """Copy the logs of all shards in the same way, each pair into a folder of its number."""
        shards = self.shards()
        if not shards:
            raise NoLogError(f"there are no shards at {self._shards}: no client of Kafka's came")
        logs: dict[str, Callable[[], LogReader]] = {}
        for path, name in ((each / name.value, name) for each in shards for name in BACKED_UP):
            if path.is_dir():
                within = f"{path.parent.name}/{path.name}"
                logs[within] = partial(LogReader.open, path, kind=name.shared)
        _copy(target, logs.items())
        return shards


def _copy(target: Path, logs: Iterable[tuple[str, Callable[[], LogReader]]]) -> None:
    """Copy logs into a new folder under these paths, all or nothing; raises `LogError`."""
    if target.exists():
        raise BackupError(f"{target} exists already; a backup never overwrites, choose a new name")
    part = target.with_name(f".{target.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        for name, open_log in logs:
            with open_log() as log:
                log.backup(part / name)
        part.rename(target)
        sync_path(target.parent)
    except OSError as error:
        raise BackupError(f"no backup at {target}: {error}; the logs are untouched") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


class LogLine(NamedTuple):
    """One entry and its decoded record; `flaw` is the error if it cannot be decoded."""

    entry: Entry
    record: Record | None
    flaw: str = ""

    @property
    def kind(self) -> str:
        """The name of the record's type."""
        row = BY_NUMBER.get(self.entry.type)
        return row.name if row else f"type {self.entry.type}"


def iterate_entries(reader: GroupReader, start: int) -> Iterator[Entry]:
    """Yield the entries from an offset on; raises `Failed` if it is after the end."""
    end = reader.end()
    if start > end:
        raise Failed(f"{reader.path} ends at {end}, there is nothing from {start} on")
    for batch in reader.tail(start):
        yield from batch


def follow_entries(reader: GroupReader, start: int) -> Iterator[Entry]:
    """Yield the entries from an offset on, and wait for new ones endlessly."""
    while True:
        for entry in iterate_entries(reader, start):
            yield entry
            start = entry.offset + 1
        sys.stdout.flush()
        time.sleep(FOLLOW_SECONDS)


def make_printer(output: Output, reader: GroupReader) -> Printer:
    """Return a function that prints one entry; members have the names of their workers."""
    if output is Output.TABLE:
        narrator = Narrator(_members(reader))
        return lambda entry: say(_line(narrator, read_line(entry)))
    if output is Output.JSON:
        return _print_json
    return _print_yaml


def _print_json(entry: Entry) -> None:
    sys.stdout.write(format_json(to_document(read_line(entry))) + "\n")


def _print_yaml(entry: Entry) -> None:
    sys.stdout.write("---\n" + format_yaml(to_document(read_line(entry))))


def _line(narrator: Narrator, line: LogLine) -> str:
    said = f"({line.flaw})" if line.record is None else narrator.tell(line.record)
    when = format_time(line.entry.timestamp_ms)
    return f"{line.entry.offset:>{OFFSET_WIDTH}}  {when}  {line.kind:<{KIND_WIDTH}}  {said}"


def _members(reader: GroupReader) -> Iterator[Record | None]:
    """Yield the records of current members, which may precede the shown part of the log."""
    kinds = (reader.scan(TYPE_OF[each].number) for each in (MemberMetadata, ClassicGroup))
    for entry in (entry for entries in kinds for entry in entries):
        try:
            yield decode(entry)
        except (CodecError, LogError):  # its own line has the error, if it is shown
            continue


def read_line(entry: Entry) -> LogLine:
    """Decode an entry; an error is returned in the line, so that reading continues."""
    try:
        record = decode(entry)
    except CodecError as error:
        return LogLine(entry, None, str(error))
    return LogLine(entry, record, "" if record else "this version does not know the type; skipped")


def to_document(line: LogLine) -> dict[str, object]:
    """Return an entry as a document; `value` is None for a tombstone, base64 if undecodable."""
    entry, record = line.entry, line.record
    head: dict[str, object] = {
        "offset": entry.offset,
        "time": format_time(entry.timestamp_ms),
        "time_ms": entry.timestamp_ms,
        "kind": line.kind,
        "type": entry.type,
        "version": entry.version,
    }
    if record is None:
        value = None if entry.value is None else _plain_scalar(entry.value)
        key = _plain_scalar(entry.key)
        return {**head, "flaw": line.flaw, "key_base64": key, "value_base64": value}
    if isinstance(record, Tombstone):
        return {**head, "key": list(record.key), "value": None}
    return {**head, "value": _plain(record)}


def _plain(value: object) -> object:
    """Return a value of a record as plain data; resources and tokens in their short forms."""
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(key): _plain(each) for key, each in sorted(items, key=_by_name)}
    if isinstance(value, frozenset):
        return [str(each) for each in sorted(cast("frozenset[Resource]", value))]
    if isinstance(value, tuple) and not isinstance(value, Resource | Token):
        return _plain_tuple(cast("tuple[object, ...]", value))
    return _plain_scalar(value)


def _plain_scalar(value: object) -> object:
    if isinstance(value, Enum):
        return value.name if isinstance(value.value, int) else value.value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _by_name(item: tuple[object, object]) -> str:
    return str(item[0])


def _plain_tuple(value: tuple[object, ...]) -> object:
    names: tuple[str, ...] | None = getattr(value, "_fields", None)
    if names is None:
        return [_plain(each) for each in value]
    return {name: _plain(each) for name, each in zip(names, value, strict=True)}
