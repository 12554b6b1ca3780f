"""The settings of the store in which a group's commits count, for clusters of many nodes.

What several of them say together is checked by `flaws_in_store`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from ....actors.settings import word
from ....events.placement import split_list
from ....events.stores.opening import KAFKA, LMDB, POSTGRES
from ...pipeline.installed import pip_install
from ...security.kafka.listeners import parse_address
from . import kinds
from .kinds import FILE, TEXT, milliseconds, number
from .rest import RestKeys
from .setting import Contradiction, Domain, setting

MOST_REPLICAS: Final = 32
TAKEOVER_MS: Final = 2_500
"""How long a takeover takes at most, once the owner's silence is noticed."""
DEFAULTS: Final = {"heartbeat_interval_ms": 1_000, "session_timeout_ms": 15_000}
"""The defaults with a store: a worker outlives a takeover."""
_IN_URL: Final = re.compile(r"^postgres(ql)?://[^/\s@]*:[^/\s]*@|[?&]password=", re.IGNORECASE)


def _check_url(text: str) -> str:
    text = text.strip()
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("it is no URL of PostgreSQL")
    if _IN_URL.search(text):
        raise ValueError("a password in it would be shown to all: put it into a passfile")
    return text


def _check_servers(text: str) -> str:
    for each in split_list(text):
        parse_address(each)
    return text


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", text):
        raise ValueError
    return text


_KIND: Final = Domain(word(LMDB, POSTGRES, KAFKA), "lmdb, postgres or kafka")
_URL: Final = Domain(_check_url, "postgresql://user@host:port/database, or nothing")
_SERVERS: Final = Domain(_check_servers, "host:port of brokers, with commas, or nothing")
_NAME: Final = Domain(_check_name, "lower-case letters, digits and _, a letter first")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKeys(RestKeys):
    """The settings of a node's store."""

    log_store: str = setting(
        _KIND,
        LMDB,
        "Where what a group decides counts: on this host (lmdb), or in PostgreSQL or Kafka, so that"
        " it outlives the host. Then each node has a copy in its data folder.",
    )
    log_store_url: str = setting(
        _URL,
        "",
        "The database of log.store = postgres. What it asks for beyond the user is in libpq's own"
        " files, such as ~/.pgpass.",
    )
    log_store_bootstrap_servers: str = setting(
        _SERVERS, "", "The brokers of log.store = kafka. Empty: those of kafka.bootstrap.servers."
    )
    log_store_client_config: str = setting(
        FILE,
        "",
        "A properties file with settings of librdkafka, such as security.protocol, for log.store ="
        " kafka.",
    )
    log_store_replication_factor: int = setting(
        number(1, MOST_REPLICAS, "replicas"), 3, "The replication factor of topics it makes."
    )
    log_store_name: str = setting(
        _NAME, "fairlead", "The schema in PostgreSQL, or what the names of topics begin with."
    )
    log_store_unsafe: str = setting(
        kinds.TRUE_OR_FALSE,
        "false",
        "Whether a store is accepted that may lose what it has acknowledged, such as a topic with"
        " one replica: true or false.",
    )
    node_name: str = setting(TEXT, "", "The name of this node. Empty: the name of its host.")
    owner_silence_ms: int = setting(
        milliseconds(500),
        3_000,
        "How long nothing may be heard of the node that owns a group until another takes it over.",
    )


def flaws_in_store(settings: StoreKeys, servers: str) -> Iterator[Contradiction]:
    """Yield conflicts between the settings of the store; `servers` are those of the listener."""
    at = f"log.store = {settings.log_store}"
    if settings.log_store == POSTGRES:
        if not settings.log_store_url:
            keys = "log.store", "log.store.url"
            yield Contradiction(keys, f"{at} needs log.store.url: which database")
        if find_spec("psycopg") is None:
            yield Contradiction(("log.store",), f"{at} needs psycopg: {pip_install('postgres')}")
    if settings.log_store == KAFKA:
        if not (settings.log_store_bootstrap_servers or servers):
            keys = "log.store", "log.store.bootstrap.servers"
            yield Contradiction(keys, f"{at} needs log.store.bootstrap.servers: which brokers")
        if find_spec("confluent_kafka") is None:
            what = "confluent-kafka"
            yield Contradiction(("log.store",), f"{at} needs {what}: {pip_install('kafka')}")


def flaws_in_takeovers(
    settings: StoreKeys, session_ms: int, interval_ms: int, margin_ms: int
) -> Iterator[Contradiction]:
    """Yield why workers would stop their tasks while another node takes the group over."""
    if settings.log_store == LMDB:
        return
    silence_ms = settings.owner_silence_ms
    least_ms = 2 * interval_ms + margin_ms + silence_ms + TAKEOVER_MS
    if session_ms < least_ms:
        yield Contradiction(
            ("session.timeout.ms", "heartbeat.interval.ms", "fence.margin.ms", "owner.silence.ms"),
            f"session.timeout.ms = {session_ms} is too short for another node to take the group"
            " over before workers stop: it must be at least 2 * heartbeat.interval.ms"
            f" ({interval_ms}) + fence.margin.ms ({margin_ms}) + owner.silence.ms ({silence_ms}) +"
            f" {TAKEOVER_MS} = {least_ms}",
        )
