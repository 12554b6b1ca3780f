"""Reads the dead letters in a folder, the newest first, a limited number of bytes at a time.

A file has the letters of one batch, and never changes once it is published. So a place among them
is a file and the byte where the next letter begins. Files are in the order of their last change;
those that come later are before any place, so a reader that goes on meets no letter twice.
"""

import heapq
import json
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from ......events.model import Resource
from ....batches.naming import describe_position
from ....spi.errors import CursorRefused, SinkAway
from ....spi.rows import DeadLetter, LetterPage, LetterQuery
from ...staging import escape_name
from ..sink_folder.staging import STAGING

_MOST_BYTES: Final = 8 << 20
"""How much of all files is read for one page."""
_LONGEST_LETTER: Final = 4 << 20
"""The most bytes of a letter that is shown."""
_LARGEST: Final = 1 << 62
"""No file is larger, in bytes."""
_MS: Final = 1_000_000
"""Nanoseconds in a millisecond."""


class _LetterFile(NamedTuple):
    """A file of dead letters; a newer one is greater."""

    changed_ns: int
    name: str


class _Place(NamedTuple):
    """The place between two letters of a file."""

    file: _LetterFile
    start: int
    """The byte where the next letter begins, or where a long one goes on."""

    @classmethod
    def parse(cls, cursor: str) -> "_Place":
        """Read a cursor; raises `CursorRefused`."""
        try:
            text = urlsafe_b64decode(cursor).decode(errors="surrogateescape")
            changed, start, name = text.split("/")
            place = cls(_LetterFile(int(changed), name), int(start))
        except ValueError:
            raise CursorRefused from None
        if not 0 <= place.start < _LARGEST:
            raise CursorRefused
        return place

    def spell(self) -> str:
        """Return it as a cursor."""
        text = f"{self.file.changed_ns}/{self.start}/{self.file.name}"
        return urlsafe_b64encode(text.encode(errors="surrogateescape")).decode()


class _Line(NamedTuple):
    """A line of a file, and where it ends."""

    content: bytes | None
    """None: it is too long to be shown."""
    end: int


class _Spent(Exception):  # noqa: N818  # says what happened
    """So much was read as one page may; there may be more."""


class LetterFolder:
    """The dead letters of one connector in a folder."""

    def __init__(self, root: Path, connector: str) -> None:
        """Several connectors may have the same folder."""
        self._root = root
        self._connector = connector
        stem = re.escape(escape_name(Resource(connector, 0)).removesuffix("0"))
        self._name = re.compile(rf"part-{stem}(\d+)-\d+-\d+-(\d{{6,}})-.*\.json", re.DOTALL)
        """The name of a file, with the numbers of task and batch."""
        self._left = _MOST_BYTES
        """How many bytes may still be read."""

    def read(self, query: LetterQuery) -> LetterPage:
        """Return a page; raises `CursorRefused`, `SinkAway`."""
        self._left = _MOST_BYTES
        begin = _Place.parse(query.cursor) if query.cursor else None
        where = f"the folder {self._root}"
        letters: list[DeadLetter] = []
        place = begin
        try:
            files = self._list_files(begin, query.limit + 1)
            for place_after, letter in self._read_files(files, begin):
                if letter is not None and len(letters) == query.limit:
                    return LetterPage(letters, place and place.spell(), where)
                letters += [] if letter is None else [letter]
                place = place_after
        except _Spent:
            return LetterPage(letters, place and place.spell(), where)
        except OSError as error:
            told = f"{error.filename or self._root} cannot be read: {error.strerror or error}"
            raise SinkAway(told) from None
        is_all = len(files) <= query.limit
        return LetterPage(letters, None if is_all or place is None else place.spell(), where)

    def _list_files(self, begin: _Place | None, most: int) -> list[_LetterFile]:
        """Return the newest files up to a place."""
        if not (self._root / STAGING).parent.is_dir():
            raise SinkAway(
                f"{self._root} is not there, or has no {Path(STAGING).parent}, which the connector "
                "makes at its first start: if it has run, mount the folder on this node, or ask a "
                "node that has it"
            )
        with os.scandir(self._root) as entries:
            named = (each for each in entries if self._name.fullmatch(each.name))
            files = (file for each in named if (file := _file_of(each)) is not None)
            return heapq.nlargest(
                most, (each for each in files if begin is None or each <= begin.file)
            )

    def _read_files(
        self, files: list[_LetterFile], begin: _Place | None
    ) -> Iterator[tuple[_Place, DeadLetter | None]]:
        """Yield each letter with the place behind it; None: a line that is no letter of it."""
        for file in files:
            start = begin.start if begin is not None and begin.file == file else 0
            yield _Place(file, start), None
            for line in self._read_lines(self._root / file.name, start):
                yield _Place(file, line.end), self._letter_in(file, line)

    def _read_lines(self, path: Path, start: int) -> Iterator[_Line]:
        """Yield the lines of a file from a byte on; raises `_Spent`."""
        at = max(0, start - 1)  # the end of the line before, if it is one
        try:
            with path.open("rb") as stream:
                stream.seek(at)
                content = stream.read(self._left)
                is_end = not stream.read(1)
        except FileNotFoundError:  # somebody has removed it meanwhile
            return
        self._left -= len(content)
        if start:
            rest_of_line, line_end, content = content.partition(b"\n")
            at += len(rest_of_line) + len(line_end)
            yield _Line(b"", max(start, at))
        *lines, last = content.split(b"\n")
        for line in lines:
            at += len(line) + 1
            yield _Line(line if len(line) <= _LONGEST_LETTER else None, at)
        if is_end and last:
            yield _Line(last if len(last) <= _LONGEST_LETTER else None, at + len(last))
        elif not is_end and len(last) > _LONGEST_LETTER:
            yield _Line(None, at + len(last))
        if not is_end or self._left <= 0:
            raise _Spent

    def _letter_in(self, file: _LetterFile, line: _Line) -> DeadLetter | None:
        """Return the letter in a line; None: it is none of this connector."""
        match = self._name.fullmatch(file.name)
        task, batch = map(int, match.groups()) if match else (None, None)
        changed_ms = file.changed_ns // _MS
        if line.content is None:
            reason = (
                f"this letter has more than {_LONGEST_LETTER >> 20} MiB, and is not shown: it ends "
                f"at byte {line.end} of {file.name}"
            )
            return DeadLetter(changed_ms, reason, "", "", None, task, batch)
        fields = _parse(line.content)
        if fields.get("connector") != self._connector:
            return None
        raw = fields.get("raw")
        return DeadLetter(
            _time_in(fields, changed_ms),
            _text(fields.get("reason", "")),
            _text(fields.get("stage", "")),
            _place_in(fields),
            None if raw is None else _text(raw),
            task,
            batch,
        )


def _file_of(entry: "os.DirEntry[str]") -> _LetterFile | None:
    """Return a file that stands in the folder itself; None: it is gone, or something else."""
    with suppress(FileNotFoundError):
        if entry.is_file(follow_symlinks=False):
            return _LetterFile(entry.stat(follow_symlinks=False).st_mtime_ns, entry.name)
    return None


def _parse(line: bytes) -> dict[str, Any]:
    """Return the fields of a line; none if it is no object of JSON."""
    try:
        fields: object = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}


def _place_in(fields: Mapping[str, object]) -> str:
    position = fields.get("position")
    parts = cast("dict[str, object]", position) if isinstance(position, dict) else {}
    return _text(describe_position(parts))


def _time_in(fields: Mapping[str, object], otherwise_ms: int) -> int:
    with suppress(ValueError, OverflowError):
        return int(datetime.fromisoformat(str(fields.get("time"))).timestamp() * 1000)
    return otherwise_ms


def _text(value: object) -> str:
    """Return a text that can be encoded: a lone surrogate is U+FFFD."""
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
