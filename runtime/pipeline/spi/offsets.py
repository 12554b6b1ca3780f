"""Offsets that users set or reset (KIP-875), and helpers to validate them.

The offset log has one offset for each source partition. While a connector is STOPPED, users may set
offsets, remove them, or seek to a time. Only the source's type knows the format of its offsets.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple

from ....events.commits import Document
from .config import any_reference
from .errors import OffsetRefused


class SeekEnd(Enum):
    """The two ends of a source's data."""

    EARLIEST = "earliest"
    LATEST = "latest"


Seek = SeekEnd | datetime
"""The position to read from next: an end of the source, or a time with a zone."""


class PartitionOffset(NamedTuple):
    """The offset up to which a source partition counts as read; None: nothing was read."""

    partition: Document
    offset: Document | None


Offsets = Sequence[PartitionOffset]
"""The offsets of several source partitions, each at most once."""


_KINDS: Final[Mapping[type, str]] = {str: "a text", int: "a whole number", bool: "true or false"}


def check_members(what: str, document: Document, kinds: Mapping[str, type]) -> None:
    """Raise `OffsetRefused` unless a document has exactly these members with these types.

    `what` names the document in the error: `partition` or `offset`. Types are str, int or bool; a
    bool does not pass as an int.
    """
    wanted = ", ".join(f"{key} ({_KINDS[kind]})" for key, kind in kinds.items())
    if missing := [key for key in kinds if key not in document]:
        key = missing[0]
        raise OffsetRefused(f"{what}.{key} is missing: its members are {wanted}")
    for key, value in document.items():
        if key not in kinds:
            raise OffsetRefused(f"{what}.{key} is unknown: its members are {wanted}")
        if type(value) is not kinds[key]:
            raise OffsetRefused(f"{what}.{key} must be {_KINDS[kinds[key]]}, not {value!r}")


def refuse_references(config: Mapping[str, str]) -> None:
    """Raise `OffsetRefused` if a source key has a reference, so that only workers can connect."""
    if any_reference("source.", config):
        raise OffsetRefused(
            "to: the source's keys have ${...} references, which only workers resolve; "
            "set the offsets themselves"
        )


def seek_from_the_beginning(to: Seek, offsets: Offsets) -> Offsets:
    """Return the removal of all offsets, for a source that can seek to its beginning only.

    Raises `OffsetRefused` for any other position.
    """
    if to is not SeekEnd.EARLIEST:
        place = to.value if isinstance(to, SeekEnd) else "a time"
        raise OffsetRefused(
            f"to: this source can go to earliest, not to {place}; known offsets can be set one by"
            " one"
        )
    return [PartitionOffset(partition, None) for partition, _ in offsets]
