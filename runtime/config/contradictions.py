"""Conflicts between settings that are each valid, such as timeouts that do not fit together.

Each function yields those of one subject, with the keys that are concerned and what to do. The
listener for Kafka clients has to be safe to reach, and has to be able to know its clients.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final

from ...actors.group.state.settings import flaw_in_bounds
from ...actors.worker.instructions import flaw_in_session
from ...events.placement import split_list
from ..pipeline.engines.connect.address import ConnectAddress, missing_packages
from ..pipeline.engines.settings import AUTH_SECRET, HOST, STANDALONE
from ..pipeline.installed import pip_install
from ..security.kafka.listeners import (
    NO_CLIENT_AUTH,
    REQUIRED,
    SASL_PLAINTEXT,
    SASL_SSL,
    SSL,
    KafkaListener,
    parse_kafka_listener,
)
from .keys import NodeSettings
from .node_keys.kafka import BY_BROKER, HERE, OAUTHBEARER, KafkaSettings
from .node_keys.kinds import ANYWHERE
from .node_keys.setting import Contradiction
from .references.trace_target import ENDPOINT, has_exporter

CORES_MAX: Final = "spark.cores.max"
_IMAGES: Final = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")


class Contradictory(Exception):  # noqa: N818  # says what the settings are
    """Settings conflict with one another; `found` has all conflicts."""

    def __init__(self, found: Sequence[Contradiction]) -> None:
        self.found = found
        super().__init__("; ".join(each.text for each in found))


def flaws_in_times(config: NodeSettings) -> Iterator[Contradiction]:
    """Yield conflicts between timeouts and intervals."""
    session = config.session_timeout_ms
    flaw = flaw_in_session(session, config.heartbeat_interval_ms, config.fence_margin_ms)
    if flaw:
        keys = "session.timeout.ms", "heartbeat.interval.ms", "fence.margin.ms"
        yield Contradiction(keys, flaw)
    if config.rebalance_timeout_ms < session:
        yield Contradiction(
            ("rebalance.timeout.ms", "session.timeout.ms"),
            f"rebalance.timeout.ms = {config.rebalance_timeout_ms} is too short: a lost worker that"
            " has to give up work is detected only after its session, so it must be"
            f" at least session.timeout.ms = {session}",
        )
    least, longest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if flaw := flaw_in_bounds(least, longest):
        yield Contradiction(("group.min.session.timeout.ms", "group.max.session.timeout.ms"), flaw)
    if config.worker_restart_backoff_max_ms < config.worker_restart_backoff_ms:
        yield Contradiction(
            ("worker.restart.backoff.max.ms", "worker.restart.backoff.ms"),
            f"worker.restart.backoff.max.ms = {config.worker_restart_backoff_max_ms} must be at"
            f" least worker.restart.backoff.ms = {config.worker_restart_backoff_ms}",
        )


def flaws_in_traces(config: NodeSettings) -> Iterator[Contradiction]:
    """Yield what is missing to send traces."""
    if config.traces_endpoint and not has_exporter():
        yield Contradiction(
            (ENDPOINT,),
            f"{ENDPOINT} = {config.traces_endpoint} needs packages that are not installed:"
            f" {pip_install('otel')}",
        )


def cluster_needs(
    master: str, conf: Mapping[str, str], folders: str, drivers: int
) -> Iterator[Contradiction]:
    """Yield the missing settings of a Spark master; `drivers` is the number of JVMs of the node.

    A standalone master has one shared secret. YARN and Kubernetes create one for each driver, but
    their executors connect to the driver, which so needs an address that is not loopback.
    """
    at = f"spark.master = {master}"
    is_standalone = master.startswith(STANDALONE)
    if is_standalone and not conf.get(AUTH_SECRET):
        yield Contradiction(
            ("spark.master",),
            f"{at} needs spark.conf.{AUTH_SECRET}: without it anybody who reaches a port of the"
            " driver or of an executor could run code there. The cluster's own daemons need the"
            " same secret, spark.authenticate and spark.network.crypto.enabled",
        )
    if not is_standalone and not conf.get(HOST):
        yield Contradiction(
            ("spark.master",),
            f"{at} needs spark.conf.{HOST}: the address at which executors reach this node",
        )
    if master.startswith("k8s://") and not any(map(conf.get, _IMAGES)):
        yield Contradiction(
            ("spark.master",),
            f"{at} needs spark.conf.{_IMAGES[0]}: what executors run, with the same Python and"
            " fairlead at the same path",
        )
    if not folders:
        yield Contradiction(
            ("spark.master", "paths.allow"),
            f"{at} needs paths.allow: the folders that this node and all executors share, in"
            " which sources and sinks lie; that they do is checked when Spark starts",
        )
    if is_standalone and drivers > 1 and CORES_MAX not in conf:
        yield Contradiction(
            ("spark.master", "workers", "engine.kind"),
            f"{at} would give all its cores to the first of {drivers} workers, and the"
            f" others would wait: leave out engine.kind, or set spark.conf.{CORES_MAX} for each",
        )


def connect_needs(master: str, folders: str, kind: str) -> Iterator[Contradiction]:
    """Yield the missing settings of a Spark Connect server; texts have no secrets of its URL."""
    address = ConnectAddress.parse(master)
    at = f"spark.master = {address}"
    if flaw := address.flaw():
        yield Contradiction(("spark.master",), f"{at} {flaw}")
    if missing := missing_packages():
        yield Contradiction(
            ("spark.master",),
            f"{at} needs packages that are not installed ({', '.join(missing)}):"
            f" {pip_install('connect')}",
        )
    if kind == "shared":
        yield Contradiction(
            ("spark.master", "engine.kind"),
            f"{at}: each worker has a session there, and no JVM is shared: leave out engine.kind",
        )
    if not folders:
        yield Contradiction(
            ("spark.master", "paths.allow"),
            f"{at} needs paths.allow: the folders that this node, the server and its executors"
            " share, in which sources and sinks lie; that they do is checked when a session begins",
        )


def flaws_in_kafka(
    settings: KafkaSettings, *, needs_broker: bool = True
) -> Iterator[Contradiction]:
    """Yield conflicts between the settings of the listener.

    Where it need not have brokers behind it, it serves groups alone, and nothing that brokers say.
    """
    at = "kafka.listeners"
    listener = parse_kafka_listener(settings.kafka_listeners) if settings.kafka_listeners else None
    if settings.members_principal:
        asks_for_none = settings.kafka_ssl_client_auth == NO_CLIENT_AUTH
        if listener is None or listener.protocol != SSL or asks_for_none:
            nodes = "members.principal", at, "kafka.ssl.client.auth"
            needed = f"{at} = SSL://HOST:PORT and {nodes[2]} = {REQUIRED}"
            text = f"{nodes[0]} names nodes by their certificates, which needs {needed}"
            yield Contradiction(nodes, text)
    if listener is None:
        return
    if find_spec("kio") is None:
        yield Contradiction((at,), f"{at} needs kio: {pip_install('kafka-listener')}")
    if not settings.kafka_bootstrap_servers:
        yield from _flaws_without_broker(settings, needs_broker=needs_broker)
    yield from _flaws_in_listener(settings, listener)
    if settings.group_consumer_session_timeout_ms <= settings.group_consumer_heartbeat_interval_ms:
        names = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"
        text = f"{names[0]} must be longer than {names[1]}: consumers would expire at once"
        yield Contradiction(names, text)


def _flaws_without_broker(
    settings: KafkaSettings, *, needs_broker: bool
) -> Iterator[Contradiction]:
    at, servers = "kafka.listeners", "kafka.bootstrap.servers"
    if needs_broker:
        text = f"{at} is set and {servers} is not: name the brokers behind"
        yield Contradiction((at, servers), text)
    asked = {"kafka.sasl": settings.kafka_sasl, "kafka.acls": settings.kafka_acls}
    for name in (name for name, value in asked.items() if value == BY_BROKER and not needs_broker):
        yield Contradiction((name, servers), f"{name} = {BY_BROKER} needs {servers}: who decides")


def _flaws_in_listener(settings: KafkaSettings, listener: KafkaListener) -> Iterator[Contradiction]:
    """Yield what keeps the listener from knowing its clients, or from being reached safely."""
    at, is_local = "kafka.listeners", listener.address.is_loopback
    if not (listener.is_encrypted or is_local or settings.kafka_plaintext == ANYWHERE):
        yield Contradiction(
            (at, "kafka.plaintext"),
            f"{at} = {settings.kafka_listeners} is not a loopback address, and what clients send"
            " there could be read and changed on its way: use SSL:// (which requires client"
            " certificates) or SASL_SSL://, or set kafka.plaintext = anywhere",
        )
    stores = {"kafka.ssl.keystore.location": settings.kafka_ssl_keystore_location}
    if listener.client_auth(settings.kafka_ssl_client_auth) != NO_CLIENT_AUTH:
        stores["kafka.ssl.truststore.location"] = settings.kafka_ssl_truststore_location
    if listener.is_encrypted and not all(stores.values()):
        text = f"{at} is encrypted, and needs {' and '.join(stores)}"
        yield Contradiction((at, *stores), text)
    if listener.has_sasl:
        yield from _flaws_in_sasl(settings)
    yield from _flaws_in_upstream(settings)


def _flaws_in_sasl(settings: KafkaSettings) -> Iterator[Contradiction]:
    """Yield what keeps clients from being authenticated."""
    mechanisms, at = split_list(settings.kafka_sasl_enabled_mechanisms), "kafka.sasl"
    protocol = settings.kafka_upstream_security_protocol
    if settings.kafka_sasl == BY_BROKER and protocol not in {SASL_PLAINTEXT, SASL_SSL}:
        other = "kafka.upstream.security.protocol"
        text = f"{at} = {BY_BROKER} needs {other} = {SASL_SSL} or {SASL_PLAINTEXT}, not {protocol}"
        yield Contradiction((at, other), text)
    bearer = "kafka.sasl.oauthbearer"
    provider = {
        f"{bearer}.jwks.endpoint.url": settings.kafka_sasl_oauthbearer_jwks_endpoint_url,
        f"{bearer}.expected.issuer": settings.kafka_sasl_oauthbearer_expected_issuer,
        f"{bearer}.expected.audience": settings.kafka_sasl_oauthbearer_expected_audience,
    }
    missing = [name for name, value in provider.items() if not value]
    if settings.kafka_sasl == HERE and OAUTHBEARER in mechanisms and missing:
        other = "kafka.sasl.enabled.mechanisms"
        text = (
            f"{OAUTHBEARER} in {other} needs {', '.join(missing)}: whose tokens count, and for"
            f" whom; or {at} = {BY_BROKER}"
        )
        yield Contradiction((at, other, *missing), text)


def _flaws_in_upstream(settings: KafkaSettings) -> Iterator[Contradiction]:
    """Yield what keeps the listener from logging in to the brokers."""
    at, protocol = "kafka.upstream.security.protocol", settings.kafka_upstream_security_protocol
    needed = {
        "kafka.upstream.sasl.mechanism": settings.kafka_upstream_sasl_mechanism,
        "kafka.upstream.sasl.username": settings.kafka_upstream_sasl_username,
        "kafka.upstream.sasl.password.file": settings.kafka_upstream_sasl_password_file,
    }
    if protocol in {SASL_PLAINTEXT, SASL_SSL} and not all(needed.values()):
        missing = [name for name, value in needed.items() if not value]
        text = f"{at} = {protocol} needs {', '.join(missing)}: the user of the node itself"
        yield Contradiction((at, *missing), text)
