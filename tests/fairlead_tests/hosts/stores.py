# pyright: basic
"""The stores of a trial, outside of all hosts: what a node is told of them, and how they fail."""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairlead_tests.hosts.network import STORE
from fairlead_tests.hosts.standby import Pair, pair
from fairlead_tests.kafka.trio import Trio, trio_at
from fairlead_tests.postgres_server import PASSWORD

DATABASE = "store"
TOPIC = "fairlead-connect-control"


class TrialStore(Protocol):
    """A store that is safe by its own account, and its faults."""

    settings: Mapping[str, object]
    """What nodes are told of it."""
    environ: Mapping[str, str]

    def crash(self) -> None:
        """End all that answers, as a crash does."""
        ...

    def restart(self) -> None:
        """Start it again."""
        ...

    def lose_leader(self) -> None:
        """Lose the server that takes writes for good: another one takes its place."""
        ...

    def replace_leader(self) -> None:
        """Start a server in the place of the lost one."""
        ...


@dataclass
class InPostgres:
    """A primary with a synchronous standby: who is promoted has all that was acknowledged."""

    servers: Pair
    settings: Mapping[str, object]
    environ: Mapping[str, str]

    def crash(self) -> None:
        self.servers.primary.kill()

    def restart(self) -> None:
        self.servers.primary.start()
        self.servers.wait()

    def lose_leader(self) -> None:
        self.servers.promote()

    def replace_leader(self) -> None:
        self.servers.restore()


@dataclass
class InKafka:
    """Three brokers."""

    brokers: Trio
    settings: Mapping[str, object]
    environ: Mapping[str, str]

    def crash(self) -> None:
        self.brokers.kill()

    def restart(self) -> None:
        self.brokers.up()

    def lose_leader(self) -> None:
        self.brokers.kill_leader(TOPIC)

    def replace_leader(self) -> None:
        self.brokers.up()


@contextmanager
def in_postgres(folder: Path) -> Generator[TrialStore]:
    """Yield the store of a trial in PostgreSQL; raises `NoServer`."""
    passfile = folder / "passfile"
    passfile.touch(mode=0o600)
    passfile.write_text(f"*:*:*:*:{PASSWORD}\n")
    with pair() as servers:
        servers.primary.empty(DATABASE)
        places = ",".join(f"{STORE}:{each.port}" for each in (servers.primary, servers.standby))
        url = f"postgresql://postgres@{places}/{DATABASE}"
        settings = {"log.store": "postgres", "log.store.url": url}
        yield InPostgres(servers, settings, {"PGPASSFILE": str(passfile)})


@contextmanager
def in_kafka(folder: Path) -> Generator[TrialStore]:
    """Yield the store of a trial in Kafka, with the network there; raises `NoPeer`."""
    place = folder / "kafka"
    place.mkdir()
    with trio_at(place, STORE) as brokers:
        settings = {"log.store": "kafka", "log.store.bootstrap.servers": brokers.bootstrap}
        yield InKafka(brokers, settings, {})


STORES: Mapping[str, Callable[[Path], AbstractContextManager[TrialStore]]] = {
    "postgres": in_postgres,
    "kafka": in_kafka,
}
