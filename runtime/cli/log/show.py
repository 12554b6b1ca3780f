"""Entries of a log on their way to the terminal: one line, or one document, each."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

from ....events.catalogue import TYPE_OF
from ....events.entries.codec import CodecError, decode
from ....events.log.errors import LogError
from ....events.log.frame import Entry
from ....events.log.reader import LogReader
from ....events.records import MemberMetadata, Record
from ..command.durations import moment
from ..command.exit_codes import Failed
from ..command.options import Output
from ..command.printing import as_json, as_yaml, say
from ..log.entries import LogLine, read_line, to_document
from ..log.narrator import Narrator

FOLLOW_SECONDS: Final = 0.2
KIND_WIDTH: Final = max(len(kind.__name__) for kind in TYPE_OF)
OFFSET_WIDTH: Final = 6

Printer = Callable[[Entry], None]


def entries_from(reader: LogReader, start: int) -> Iterator[Entry]:
    """Yield what is written from an offset on; raises `Failed` for one behind the end."""
    end = reader.end()
    if start > end:
        raise Failed(f"{reader.path} ends at {end}, there is nothing from {start} on")
    for batch in reader.tail(start):
        yield from batch


def follow_from(reader: LogReader, start: int) -> Iterator[Entry]:
    """Yield what is written from an offset on, and wait for more, for ever."""
    while True:
        for entry in entries_from(reader, start):
            yield entry
            start = entry.offset + 1
        sys.stdout.flush()
        time.sleep(FOLLOW_SECONDS)


def printer_of(output: Output, reader: LogReader) -> Printer:
    """Return what prints one entry of a log; members are told by the names of their workers."""
    if output is Output.TABLE:
        narrator = Narrator(_members(reader))
        return lambda entry: say(_line(narrator, read_line(entry)))
    if output is Output.JSON:
        return _print_json
    return _print_yaml


def _print_json(entry: Entry) -> None:
    sys.stdout.write(as_json(to_document(read_line(entry))) + "\n")


def _print_yaml(entry: Entry) -> None:
    sys.stdout.write("---\n" + as_yaml(to_document(read_line(entry))))


def _line(narrator: Narrator, line: LogLine) -> str:
    said = f"({line.flaw})" if line.record is None else narrator.tell(line.record)
    when = moment(line.entry.timestamp_ms)
    return f"{line.entry.offset:>{OFFSET_WIDTH}}  {when}  {line.kind:<{KIND_WIDTH}}  {said}"


def _members(reader: LogReader) -> Iterator[Record | None]:
    """Yield those that sit in the group now: the log may be shown from after they joined."""
    for entry in reader.scan(TYPE_OF[MemberMetadata].number):
        try:
            yield decode(entry)
        except (CodecError, LogError):  # it is told in its own line, if that is shown
            continue
