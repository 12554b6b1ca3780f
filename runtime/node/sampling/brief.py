"""The lines that the process of samples reads from its stdin; some of it is secret."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ...pipeline.spi.context import AccessLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingNode:
    """The settings of the node for which samples are read: the first line.

    `paths`, `sql` and `jdbc` are those of its `AccessLimits`.
    """

    data_dir: str
    conf: Mapping[str, str]
    """The node's settings of Spark."""
    paths: Sequence[str] = ()
    sql: Sequence[str] = ()
    jdbc: Sequence[str] = ()

    def encode(self) -> bytes:
        """Return it as a line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> "SamplingNode":
        """Return it from a line of JSON."""
        return cls(**json.loads(line))

    def limits(self) -> AccessLimits:
        """Return what configs may use on this node."""
        return AccessLimits(self.data_dir, tuple(self.paths), frozenset(self.sql), tuple(self.jdbc))


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One sample: each further line."""

    name: str
    """The connector's name."""
    config: Mapping[str, str]
    """The config with sealed secrets, and with references."""

    def encode(self) -> bytes:
        """Return it as a line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> "SampleRequest":
        """Return it from a line of JSON."""
        return cls(**json.loads(line))
