"""Requests about the offsets of connectors."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec.json import Decoder

from ...replies.node import Message
from ...replies.progress import ConnectorOffset, ConnectorOffsets, OffsetsSought
from ..sending.requests import NodeRequest, get

OFFSETS: Final = Decoder(ConnectorOffsets)
SOUGHT: Final = Decoder(OffsetsSought)
MESSAGE: Final = Decoder(Message)


def get_offsets(name: str) -> NodeRequest[ConnectorOffsets]:
    """Return the offset of each source partition, and the lag."""
    return get(OFFSETS, "connectors", name, "offsets", extended=True)


def set_offsets(name: str, offsets: Iterable[ConnectorOffset]) -> NodeRequest[Message]:
    """Set offsets of a stopped connector; None as an offset removes that of the partition."""
    body = {"offsets": [*offsets]}
    return NodeRequest("PATCH", ("connectors", name, "offsets"), MESSAGE, {}, body)


def reset_offsets(name: str) -> NodeRequest[Message]:
    """Remove all offsets of a stopped connector: its source is then read from the beginning."""
    return NodeRequest("DELETE", ("connectors", name, "offsets"), MESSAGE)


def seek(name: str, to: datetime | str, *, dry_run: bool = False) -> NodeRequest[OffsetsSought]:
    """Move a stopped connector to a time with its zone, to `earliest` or to `latest`."""
    body = {"to": to if isinstance(to, str) else to.isoformat(), "dry_run": dry_run}
    return NodeRequest("POST", ("connectors", name, "offsets", "seek"), SOUGHT, {}, body)
