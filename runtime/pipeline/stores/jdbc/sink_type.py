"""`sink.type=jdbc`: appends rows to a table, at least once."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from .....events.commits import Manifest
from ...spi.config import Definition, ParsedConfig
from ...spi.connector import Delivery, Promise
from ...spi.context import Context, ExternalAccess, ProbeResult
from ...spi.lineage import Dataset
from ...spi.types import SinkType
from . import keys
from .connecting import dataset_in, options, probe_url
from .sink import JdbcSink


class JdbcSinkType(SinkType):
    """A table that Spark writes by a JDBC driver."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys."""
        return keys.SINK

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        return keys.complaints("sink", config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return at least once, and why."""
        del config
        return Promise(cls.delivery, ("sink.type=jdbc: rows of a batch come twice after a crash",))

    @classmethod
    def datasets(cls, config: Mapping[str, str], manifest: Manifest) -> Sequence[Dataset]:
        """Return the table."""
        del manifest
        return [dataset_in("sink", config, config[keys.TABLE])]

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the node allows the URL."""
        return probe_url("sink", config, outside.reach)

    @classmethod
    def sink(cls, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> JdbcSink:
        """Make the sink of one task."""
        return JdbcSink(
            options("sink", config, context.reach),
            settings.text(keys.TABLE),
            makes_table=settings.flag(keys.AUTO_CREATE),
        )
