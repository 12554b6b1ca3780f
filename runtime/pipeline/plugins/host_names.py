"""The names of connectors in a plugin host.

A connector with a plugin on both sides is there twice. Its sink has a name of its own for Connect's
worker, in metrics, in the log and in news: one that no connector can have, since names have no
control characters.
"""

from typing import Final

SINK_PART: Final = "sink"
"""The part of a connector that is its sink, where its source is a plugin as well."""
_MARK: Final = "\t"


def name_in_host(connector: str, part: str) -> str:
    """Return the name of a connector, or of a part of it unless that is ""."""
    return f"{connector}{_MARK}{part}" if part else connector


def owner_of(name: str) -> str:
    """Return the connector that something in a host is of."""
    return name.partition(_MARK)[0]


def part_of(name: str) -> str:
    """Return which part of its connector something in a host is; "" for all of it."""
    return name.partition(_MARK)[2]
