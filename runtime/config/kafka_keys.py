"""The settings of the listener for Kafka clients, and their validation."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, NamedTuple

from ...actors.settings import SettingType, whole, word
from ...actors.transport.ports import LOOPBACK, HostPort
from ...events.placement import split_list
from ..pipeline.distribution import pip_install
from .kinds import INT32_MAX, MILLISECONDS, MILLISECONDS_OR_NONE, PORT_MAX
from .setting import SAME, Contradiction, Domain, setting

PLAINTEXT, SSL = "PLAINTEXT", "SSL"
MOST_SHARDS: Final = 64
MOST_CONNECTIONS: Final = 100_000
MOST_GROUPS: Final = 100_000
OFFERED: Final = "127.0.0.1:9092"


class KafkaListener(NamedTuple):
    """The address of the listener for Kafka's clients, and whether connections are encrypted."""

    address: HostPort
    is_encrypted: bool = False


def parse_kafka_listener(text: str) -> KafkaListener:
    """Parse `PLAINTEXT://HOST:PORT` or `SSL://HOST:PORT`; raises `ValueError`."""
    scheme, separator, address = text.partition("://")
    if scheme not in {PLAINTEXT, SSL} or not separator:
        raise ValueError(f"it begins with neither {PLAINTEXT}:// nor {SSL}://")
    return KafkaListener(parse_address(address, LOOPBACK), scheme == SSL)


def parse_address(text: str, default_host: str = "") -> HostPort:
    """Parse HOST:PORT; raises `ValueError`."""
    host, separator, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or default_host
    if not separator or not host or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return HostPort(host, int(port))


def _check_listener(text: str) -> str:
    if text:
        parse_kafka_listener(text)
    return text


def _check_servers(text: str) -> str:
    for each in split_list(text):
        parse_address(each)
    return text


def _number(low: int, high: int, unit: str) -> Domain:
    allowed = f"a whole number, from {low} to {high}"
    return Domain(whole(low, high), allowed, unit, SettingType.INT)


_LISTENER: Final = Domain(
    _check_listener, f"one URL such as PLAINTEXT://{OFFERED} or SSL://HOST:PORT, or nothing"
)
_SERVERS: Final = Domain(_check_servers, "HOST:PORT, with commas between several, or nothing")
_HOST: Final = Domain(str.strip, "a host's name or address, or nothing")
_FILE: Final = Domain(str.strip, "a file, or nothing")
_PLAINTEXT: Final = Domain(word("loopback", "anywhere"), "loopback or anywhere")


def flaws_in_kafka(settings: "KafkaSettings") -> Iterator[Contradiction]:
    """Yield conflicts between the settings of the listener."""
    if not settings.kafka_listeners:
        return
    listener, at = parse_kafka_listener(settings.kafka_listeners), "kafka.listeners"
    if find_spec("kio") is None:
        yield Contradiction((at,), f"{at} needs kio: {pip_install('kafka-listener')}")
    if not settings.kafka_bootstrap_servers:
        servers = "kafka.bootstrap.servers"
        text = f"{at} is set and {servers} is not: name the brokers behind"
        yield Contradiction((at, servers), text)
    is_local = listener.address.is_loopback
    if not (listener.is_encrypted or is_local or settings.kafka_plaintext == "anywhere"):
        yield Contradiction(
            (at, "kafka.plaintext"),
            f"{at} = {settings.kafka_listeners} is not a loopback address, and any client there"
            " could join and delete groups: use SSL://, which requires client certificates, or"
            " set kafka.plaintext = anywhere",
        )
    if settings.group_consumer_session_timeout_ms <= settings.group_consumer_heartbeat_interval_ms:
        names = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"
        text = f"{names[0]} must be longer than {names[1]}: consumers would expire at once"
        yield Contradiction(names, text)
    stores = settings.kafka_ssl_keystore_location, settings.kafka_ssl_truststore_location
    if listener.is_encrypted and not all(stores):
        names = "kafka.ssl.keystore.location", "kafka.ssl.truststore.location"
        text = f"{at} is encrypted, and needs both {names[0]} and {names[1]}"
        yield Contradiction((at, *names), text)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """The settings of a node's listener for Kafka clients."""

    kafka_listeners: str = setting(
        _LISTENER,
        "",
        "The address for Kafka clients, whose groups this node then coordinates; broker n is at"
        " the port + 1 + n. Empty: no listener.",
        "listeners",
    )
    kafka_bootstrap_servers: str = setting(
        _SERVERS,
        "",
        "The brokers behind that listener; the connections to them are not encrypted.",
        "bootstrap.servers",
    )
    kafka_advertised_host_name: str = setting(
        _HOST, "", "The host name that Kafka clients get. Empty: that of kafka.listeners."
    )
    kafka_plaintext: str = setting(
        _PLAINTEXT,
        "loopback",
        "Where kafka.listeners may be without encryption; with anywhere, every client that"
        " reaches it may connect.",
    )
    kafka_ssl_keystore_location: str = setting(
        _FILE,
        "",
        "The private key and certificate of an SSL listener, in PEM.",
        "ssl.keystore.location",
    )
    kafka_ssl_truststore_location: str = setting(
        _FILE,
        "",
        "The authorities of the certificates that clients of an SSL listener must have, in PEM.",
        "ssl.truststore.location",
    )
    kafka_group_shards: int = setting(
        _number(1, MOST_SHARDS, "processes"),
        2,
        "The number of processes for the groups of Kafka clients; it cannot change once the first"
        " group exists.",
        "offsets.topic.num.partitions",
    )
    offsets_retention_minutes: int = setting(
        _number(1, INT32_MAX, "minutes"),
        10_080,
        "How long unused offsets of Kafka clients are kept, after their commit and after their"
        " group became empty.",
        SAME,
    )
    offsets_retention_check_interval_ms: int = setting(
        MILLISECONDS, 600_000, "How often a group is searched for such offsets.", SAME
    )
    kafka_max_connections: int = setting(
        _number(1, MOST_CONNECTIONS, "connections"),
        10_000,
        "The most connections of all Kafka clients.",
        "max.connections",
    )
    kafka_max_connections_per_ip: int = setting(
        _number(1, MOST_CONNECTIONS, "connections"),
        10_000,
        "The most connections from one address.",
        "max.connections.per.ip",
    )
    kafka_max_groups: int = setting(
        _number(1, MOST_GROUPS, "groups"),
        MOST_GROUPS,
        "The most groups of Kafka clients in each process of groups (kafka.group.shards).",
    )
    kafka_max_members: int = setting(
        _number(1, INT32_MAX, "members"),
        100_000,
        "The most members of all these groups.",
    )
    kafka_max_metadata_bytes: int = setting(
        _number(1 << 20, INT32_MAX, "bytes"),
        32 << 20,
        "The most bytes of metadata, subscriptions and assignments of all these members.",
    )
    group_consumer_assignment_interval_ms: int = setting(
        MILLISECONDS_OR_NONE,
        1_000,
        "The least time between two computations of a target of a group of these consumers."
        " 0: none.",
        SAME,
    )
    group_consumer_session_timeout_ms: int = setting(
        MILLISECONDS,
        45_000,
        "The session timeout of consumers with group.protocol=consumer.",
        SAME,
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        MILLISECONDS, 5_000, "The heartbeat interval of these consumers.", SAME
    )
