"""Offsets of a connector in Connect's shapes (KIP-875), and where a seek moves them."""

from msgspec import Struct, field

from ....events.commits import Document
from .connectors import UnreadInput


class ConnectorOffset(Struct, frozen=True):
    """Connect's `ConnectorOffset`: how far a source partition was read."""

    partition: Document
    offset: Document | None


class ConnectorOffsets(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorOffsets`."""

    offsets: list[ConnectorOffset]
    lag: UnreadInput | None = None
    """What was left to read, where all tasks know it and `extended` was asked for."""


class OffsetMove(Struct, frozen=True):
    """A source partition whose offset a seek changes; None: it has none."""

    partition: Document
    before: Document | None = field(name="from")
    after: Document | None = field(name="to")


class OffsetsSought(Struct, frozen=True):
    """What a seek changes, or would change in a dry run."""

    to: str
    dry_run: bool
    partitions: int
    """How many partitions have another offset by it, or none any more."""
    first: list[OffsetMove]
    """The first few of them."""
    message: str
