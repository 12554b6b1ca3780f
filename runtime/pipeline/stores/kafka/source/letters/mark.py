# pyright: basic
"""The header of a dead letter by which its row is read again.

A letter has the headers of the record that it was, then `__fairlead.letter`, then Connect's context
(`__connect.errors.*`). So what belongs to the record ends at the last of these marks, even if the
record was itself a letter. Anybody may write to a topic: a mark that says nothing counts as none.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from .....spi.rows import RECORD_PLACE
from ..reader import HEADERS, LATEST_MS

_MARK: Final = "__fairlead.letter"
_CONTEXT: Final = "__connect.errors."
_OF_ERROR: Final = frozenset(
    {
        "connector.name",
        "task.id",
        "stage",
        "class.name",
        "exception.class.name",
        "exception.message",
        "exception.stacktrace",
    }
)
"""The names of Connect's context that are no part of a position."""


class LetterMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the value of a letter is read again; the fields are those of `Rejects`."""

    format: str | None = None
    columns: list[str] | None = None
    sent_ms: Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS)] | None = None


class Letter(NamedTuple):
    """A letter, as the headers of its record describe it."""

    connector: str
    """The connector that has written it; empty: they do not say."""
    position: Mapping[str, str]
    mark: LetterMark | None
    """None: nothing says how it is read again."""
    headers: Sequence[Mapping[str, Any]]
    """The headers of the record that it was."""


def letter_headers(letters: pa.Table) -> pa.Array:
    """Return the headers of letters with the columns of `Rejects`, and `headers`, the context."""
    found = letters.select(["format", "columns", "sent_ms", "record_headers", "headers"])
    return pa.array([_pairs(each) for each in found.to_pylist()], HEADERS)


def read_letter(headers: Sequence[Mapping[str, Any]]) -> Letter:
    """Return what the headers of a record say of the letter in it."""
    marks = [number for number, each in enumerate(headers) if each["key"] == _MARK]
    at = marks[-1] if marks else -1
    context = {
        each["key"].removeprefix(_CONTEXT): (each["value"] or b"").decode(errors="replace")
        for each in headers[at + 1 :]
        if each["key"].startswith(_CONTEXT)
    }
    position = {name: text for name, text in context.items() if name not in _OF_ERROR}
    mark = _read_mark(headers[at]["value"]) if marks else None
    return Letter(context.get("connector.name", ""), position, mark, headers[: max(at, 0)])


def place_of(position: Mapping[str, str]) -> tuple[str, int, int] | None:
    """Return the topic, partition and offset in a position; None: it is not that of a record."""
    topic, partition, offset = (position.get(name, "") for name in RECORD_PLACE)
    if not (topic and _is_number(partition, 31) and _is_number(offset, 63)):
        return None
    return topic, int(partition), int(offset)


def _is_number(text: str, bits: int) -> bool:
    # Python refuses to read a number of more than 4,300 digits.
    return text.isascii() and text.isdecimal() and len(text) < bits and int(text) < 1 << bits


def _pairs(letter: Mapping[str, Any]) -> list[dict[str, Any]]:
    mark = LetterMark(letter["format"], letter["columns"], letter["sent_ms"])
    return [
        *(letter["record_headers"] or ()),
        {"key": _MARK, "value": msgspec.json.encode(mark)},
        *({"key": key, "value": value.encode()} for key, value in letter["headers"]),
    ]


def _read_mark(value: bytes | None) -> LetterMark | None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(value or b"", type=LetterMark)
    return None
