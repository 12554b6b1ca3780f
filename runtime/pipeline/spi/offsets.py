"""Offsets as people set them: how far a source is to count as read (KIP-875).

The offset log keeps one offset for each source partition. While a connector is STOPPED people may
set offsets, take them away, or have the source find those of a time. What such an offset has to
look like the source's type alone knows; what types need for that stands here.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple

from ....events.commits import Document
from .config import has_deferred
from .errors import OffsetRefused


class SeekEnd(Enum):
    """The two ends of what a source holds."""

    EARLIEST = "earliest"
    LATEST = "latest"


Seek = SeekEnd | datetime
"""Where a source is to go on: at one of its ends, or with what came at a time, which has a zone."""


class PartitionOffset(NamedTuple):
    """How far a source partition was read, or is to count as read; None: nothing of it."""

    partition: Document
    offset: Document | None


Offsets = Sequence[PartitionOffset]
"""Those of several source partitions, each named once."""


_KINDS: Final[Mapping[type, str]] = {str: "a text", int: "a whole number", bool: "true or false"}


def check_members(what: str, document: Document, kinds: Mapping[str, type]) -> None:
    """Raise `OffsetRefused` unless a document has just these members, each of its type.

    `what` says which document it is: `partition` or `offset`. A type is str, int or bool, and a
    bool is no int.
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


def refuse_deferred(config: Mapping[str, str]) -> None:
    """Raise `OffsetRefused` if the keys of the source hold references, for who has to ask it."""
    if has_deferred("source.", config):
        raise OffsetRefused("to: values of this config are known to its workers alone")


def seek_from_the_beginning(to: Seek, offsets: Offsets) -> Offsets:
    """Return the offsets of a source that finds its beginning alone, where it has none of them.

    Raises `OffsetRefused` for any other place.
    """
    if to is not SeekEnd.EARLIEST:
        place = to.value if isinstance(to, SeekEnd) else "a time"
        raise OffsetRefused(
            f"to: this source can go to earliest, not to {place}; offsets that you know can be set"
            " one by one"
        )
    return [PartitionOffset(partition, None) for partition, _ in offsets]
