"""Reads what a broker has written of a topic, of which clients tell nothing.

The format of a batch: https://kafka.apache.org/documentation/#recordbatch
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_START, _ATTRIBUTES = 12, 21
"""Where the length of a batch ends, and where its attributes are."""


class Batch(NamedTuple):
    """What the attributes of a batch say."""

    compression: str
    is_transactional: bool
    is_control: bool
    """Whether it is the end of a transaction."""


def batches(data: Path, topic: str) -> Iterator[Batch]:
    """Read the batches of the first partition, from the folder of a broker's log."""
    content = (data / f"{topic}-0" / f"{0:020}.log").read_bytes()
    at = 0
    while at + _ATTRIBUTES + 2 <= len(content):
        (length,) = struct.unpack_from(">i", content, at + 8)
        (attributes,) = struct.unpack_from(">h", content, at + _ATTRIBUTES)
        is_transactional, is_control = bool(attributes & 0x10), bool(attributes & 0x20)
        yield Batch(_CODECS[attributes & 0x07], is_transactional, is_control)
        at += _START + length


def compressions(data: Path, topic: str) -> set[str]:
    """Return how the records of the first partition are compressed."""
    return {each.compression for each in batches(data, topic) if not each.is_control}
