"""Which store the logs of a cluster are in, and how a process opens it.

The engines' clients are imported by whoever opens a store: a node without one does not need them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .port import Claimant, LogStore, StoreSettingsError

LMDB: Final = "lmdb"
POSTGRES: Final = "postgres"
KAFKA: Final = "kafka"
_ODD: Final = re.compile(r"[^a-zA-Z0-9.-]")


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """The store of a cluster's logs."""

    kind: str
    """postgres or kafka."""
    name: str
    """The schema of PostgreSQL, or what the names of Kafka's topics begin with."""
    url: str = ""
    """The database, as a URL of libpq without a password."""
    servers: str = ""
    """The bootstrap servers of Kafka."""
    client_file: str = ""
    """A properties file with more settings of Kafka's client; empty: none."""
    replication: int = 3
    """The replication factor of topics that are made."""
    silence_seconds: float = 3.0
    """How long an owner must be silent until another node may claim its logs."""
    group_id: str = ""
    """The group of the cluster's workers: who owns that owns all logs of the cluster."""
    node: str = ""
    """The name of this node."""
    address: str = ""
    """The address of this node's listener as other nodes reach it, `host:port`."""
    folder: str = ""
    """The identity of this node's data folder."""
    version: str = ""
    """The version of the program on this node."""
    cluster: str = ""
    """The public id of the cluster, by this node's copy of the key."""
    is_unsafe: bool = False
    """Whether an engine that may lose what it has acknowledged is accepted."""

    @property
    def claimant(self) -> Claimant:
        """The name of this node as a claim has it."""
        return Claimant(self.node, self.address, self.folder)

    def load(self) -> None:
        """Import the engine's client, which takes a while; raises `LogError` if there is none."""
        if self.kind == POSTGRES:
            from . import postgres  # noqa: F401, PLC0415
        else:
            from . import kafka  # noqa: F401, PLC0415

    def check(self) -> None:
        """Raise `StoreSettingsError` if a file that it names cannot be read."""
        self._client()

    def open(self, name: str) -> LogStore:
        """Return the store of one log; raises `LogError`."""
        log = topic_part(name)
        if self.kind == POSTGRES:
            from .postgres import PostgresStore  # noqa: PLC0415

            return PostgresStore(log, self.url, self.name)
        from .kafka import KafkaStore  # noqa: PLC0415

        return KafkaStore(log, self._client(), f"{self.name}-", self.replication)

    def _client(self) -> Mapping[str, str]:
        settings = {"bootstrap.servers": self.servers}
        if self.client_file:
            try:
                lines = Path(self.client_file).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise StoreSettingsError(
                    f"the file of log.store.client.config, {self.client_file}, cannot be read:"
                    f" {error}. Put it there, for the user of fairlead to read, or leave the"
                    " setting out"
                ) from None
            pairs = (line.partition("=") for line in lines if line.strip() and line[0] not in "#!")
            settings |= {key.strip(): value.strip() for key, _, value in pairs}
        return settings


def topic_part(name: str) -> str:
    """Return a name as part of a topic's name: other characters are spelled by their numbers."""
    return _ODD.sub(lambda found: f"_{ord(found[0]):x}_", name)
