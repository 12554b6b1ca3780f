"""The two logs of a group: what is decided, and how far its tasks have come."""

from typing import Final, get_args

from . import records
from .codec import TYPES
from .log.tables import LogKind

_ALL = frozenset(number for number, _ in TYPES.values())
_OFFSETS = frozenset(TYPES[each][0] for each in get_args(records.OffsetRecord))

CONTROL: Final = LogKind("control", "offsets", _OFFSETS)
OFFSETS: Final = LogKind("offsets", "control", _ALL - _OFFSETS)
