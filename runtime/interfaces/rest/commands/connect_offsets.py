"""The offsets of connectors of Kafka Connect's own classes (KIP-875).

They are in Kafka, where Kafka's own worker reads and changes them, in the JVM that REST has for
plugins. Those of a source that feeds a sink of fairlead's are in the log, and the same code asks
its class before they change there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Self

from .....events.commits import Document
from .....events.records import ConnectorConfig
from ....config.references.resolving import ReferenceBroken
from ....config.secrets import CannotUnseal, OpenedConfig, Vault
from ....pipeline.spi.keys.plugin_sink import RECORD_TOPIC
from ....pipeline.spi.offsets import PartitionOffset
from ...replies.node import Message
from ...replies.progress import ConnectorOffsets
from ..server.errors import ApiError
from .connect_plugins import ConnectPlugins


@dataclass(frozen=True, slots=True)
class OffsetsInKafka:
    """The offsets of one connector."""

    plugins: ConnectPlugins
    opened: OpenedConfig
    """Its config, in which the references are left that the JVM resolves."""
    tasks: int
    """How many tasks it has had last."""

    @classmethod
    def of(cls, plugins: ConnectPlugins, vault: Vault, stored: ConnectorConfig, tasks: int) -> Self:
        """Return the offsets of a connector; raises `ApiError` if its config cannot be opened."""
        return cls(plugins, _opened(plugins, vault, stored), tasks)

    def read(self) -> ConnectorOffsets:
        """Return them, whether it runs or not; raises `ApiError`."""
        return self.plugins.offsets(*self.opened)

    def alter(self, offsets: Sequence[Mapping[str, object]]) -> Message:
        """Set offsets, and remove those that are null; raises `ApiError`."""
        return self.plugins.alter_offsets(*self.opened, offsets, self.tasks)

    def reset(self) -> Message:
        """Remove all; raises `ApiError`."""
        return self.plugins.alter_offsets(*self.opened, None, self.tasks)


def ask_for_offsets(
    plugins: ConnectPlugins,
    vault: Vault,
    stored: ConnectorConfig,
    offsets: Sequence[PartitionOffset] | None,
    partitions: Sequence[Document],
) -> Message | None:
    """Ask a source that feeds a sink whether its offsets may change; None: all are removed.

    It may change what it keeps outside. It is not asked about those of its sink: None if there are
    no others. Raises `ApiError` if it refuses.
    """
    from ....pipeline.connectors.plugin_pipeline import (  # noqa: PLC0415  # loads Spark's libraries
        config_of_plugin,
    )

    config, secrets = _opened(plugins, vault, stored)
    changed = None
    if offsets is not None:
        changed = [each._asdict() for each in offsets if RECORD_TOPIC not in each.partition]
        if not changed:
            return None
    own = [each for each in partitions if RECORD_TOPIC not in each]  # others are of its sink
    return plugins.ask_for_offsets(config_of_plugin(config), secrets, changed, own)


def _opened(plugins: ConnectPlugins, vault: Vault, stored: ConnectorConfig) -> OpenedConfig:
    try:
        return vault.open(stored.connector, stored.config, plugins.spec.providers)
    except (CannotUnseal, ReferenceBroken) as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"{error}; nothing was changed") from None
