"""The messages of `GET /events`: the data of each, by the name of its event."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from .state import PageChange, PageStep


class StreamOpened(Struct, frozen=True):
    """The data of the message `open`: all later ones follow in order, none left out."""

    sequence: int
    """The number of the message behind which they follow."""


class StreamGap(Struct, frozen=True):
    """The data of the message `gap`: messages were missed that are not kept any more."""

    sequence: int
    """The number of the message behind which the stream goes on; `/state` is to be read again."""


PageMessage = StreamOpened | PageChange | PageStep | StreamGap
MESSAGES: Final[Mapping[str, type[PageMessage]]] = {
    "open": StreamOpened,
    "change": PageChange,
    "step": PageStep,
    "gap": StreamGap,
}
EVENT_NAMES: Final = {kind: name.encode() for name, kind in MESSAGES.items()}
