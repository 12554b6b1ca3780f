"""The launcher's handle of the Kafka listener: it is replaced when it ends or does not echo."""

import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from ....actors.group.state.settings import ShardLimits
from ....events.log.process import ProcessId
from ....events.placement import split_list
from ....events.stores.opening import LMDB
from ...cluster.kafka_security import (
    KAFKA_TLS,
    NODES_UNSET,
    BearerSpec,
    KafkaSecurity,
    UpstreamSpec,
)
from ...cluster.spec import KafkaSpec, NodeSpec
from ...config.load import Config
from ...config.node_keys.kafka import BY_BROKER
from ...config.references.resolving import resolve
from ...processes.liveness import STARTS_FOR, ProcessProbe, Silence
from ...processes.readiness import wait_readable
from ...processes.tied import BriefedProcess
from ...security.kafka.listeners import (
    NO_CLIENT_AUTH,
    SASL_PLAINTEXT,
    SASL_SSL,
    SSL,
    KafkaListener,
    parse_address,
    parse_kafka_listener,
    split_principals,
)
from ...security.tls import ServerTls, tls_settings
from ..process_files import ProcessFiles

MINUTE_MS: Final = 60_000


class EchoQuestion:
    """A byte that a process was sent by a socket, and sends back from its loop."""

    def __init__(self, end: socket.socket) -> None:
        """Send the byte; nothing is waited for."""
        self._socket = end
        self.is_lost = False
        """Whether the process has closed its end."""
        try:
            end.send(b"?", socket.MSG_DONTWAIT)
        except OSError:
            self.is_lost = True

    def answer(self, seconds: float) -> object | None:
        """Wait for the byte, for some seconds at most."""
        if self.is_lost or not wait_readable(self._socket, seconds)[0]:
            return None
        try:
            if self._socket.recv(1):
                return True
        except OSError:
            pass
        self.is_lost = True
        return None

    def close(self) -> None:
        """Do nothing: the socket belongs to the process."""


class AskedProcess(BriefedProcess):
    """A process that gets one end of a socket pair, by its number, as the last argument."""

    def __init__(
        self,
        module: str,
        brief: Mapping[str, object],
        record: Callable[[ProcessId], None],
        node: NodeSpec,
    ) -> None:
        """Prepare `python -m MODULE`, as its base does."""
        super().__init__(module, brief, record, node.backoff_ms)
        limit_seconds = node.answer_timeout_ms / 1000
        self.probe = ProcessProbe(limit_seconds)
        self._start = Silence(limit_seconds * STARTS_FOR, 0.0)
        """How long it has been starting."""
        self._has_begun = False
        """Whether it has answered once."""
        self._end: socket.socket | None = None
        """This process's end of the pair."""

    @property
    def probes(self) -> Sequence[ProcessProbe]:
        """The probe of its echoes."""
        return (self.probe,)

    @property
    def silent_seconds(self) -> float:
        """How long it has not answered; 0 until it has begun."""
        return self.probe.silence.seconds if self._has_begun else 0.0

    def _ask(self) -> Silence | None:
        if (end := self._end) is None:
            return None
        if self.probe.look(lambda: EchoQuestion(end)) is not None:
            self._has_begun = True
        self._start.look(time.monotonic(), is_silent=not self._has_begun)
        return self.probe.silence if self._has_begun else self._start

    def _spawn(
        self, command: Sequence[str], pass_fds: Sequence[int] = ()
    ) -> "subprocess.Popen[bytes]":
        self._forget_answers()
        self._start = Silence(self._start.limit_seconds, time.monotonic())
        self._end, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            return super()._spawn([*command, str(number)], [*pass_fds, number])

    def _forget_answers(self) -> None:
        """Forget what the process has answered so far; a new one has another socket."""
        super()._forget_answers()
        self._has_begun = False
        end, self._end = self._end, None
        if end is not None:
            end.close()


class KafkaProcess(AskedProcess):
    """The process that listens for Kafka clients; their groups are in other processes."""

    title = "Kafka listener"

    def __init__(self, files: ProcessFiles, node: NodeSpec, spec: KafkaSpec) -> None:
        """Prepare the command and its input; nothing is started yet. Raises `ReferenceBroken`."""
        brief = {
            "group": node.group_id,
            "data_dir": str(node.data_dir),
            "log": asdict(node.log),
            "kafka": asdict(resolve_secrets(spec, node.data_dir)),
        }
        record = files.recorder("kafka", "listener")
        super().__init__("fairlead.runtime.kafka", brief, record, node)


def kafka_spec(config: Config) -> KafkaSpec | None:
    """Build the specification of the Kafka listener from the configuration; None if it is off."""
    if not config.kafka_listeners:
        return None
    listener = parse_kafka_listener(config.kafka_listeners)
    return KafkaSpec(
        *listener.address,
        config.kafka_advertised_host_name or listener.address.host,
        tuple(parse_address(each) for each in split_list(config.kafka_bootstrap_servers)),
        config.kafka_group_shards,
        config.kafka_max_connections,
        config.kafka_max_connections_per_ip,
        config.group_consumer_session_timeout_ms,
        config.group_consumer_heartbeat_interval_ms,
        config.offsets_retention_minutes * MINUTE_MS,
        config.offsets_retention_check_interval_ms,
        config.group_consumer_assignment_interval_ms,
        ShardLimits(
            config.kafka_max_groups, config.kafka_max_members, config.kafka_max_metadata_bytes
        ),
        _security(config, listener),
        split_list(config.group_protocols_allowed),
    )


def _security(config: Config, listener: KafkaListener) -> KafkaSecurity:
    return KafkaSecurity(
        sasl=config.kafka_sasl if listener.has_sasl else "",
        mechanisms=split_list(config.kafka_sasl_enabled_mechanisms),
        users=str(config.kafka_users_path),
        bearer=BearerSpec(
            jwks=config.kafka_sasl_oauthbearer_jwks_endpoint_url,
            issuer=config.kafka_sasl_oauthbearer_expected_issuer,
            audiences=split_list(config.kafka_sasl_oauthbearer_expected_audience),
            skew_seconds=config.kafka_sasl_oauthbearer_clock_skew_seconds,
            subject_claim=config.kafka_sasl_oauthbearer_sub_claim_name,
        ),
        session_ms=config.kafka_connections_max_reauth_ms,
        acls=BY_BROKER if config.kafka_acls == BY_BROKER else _absolute(config.kafka_acls),
        super_users=split_principals(config.kafka_super_users),
        nodes=split_principals(config.members_principal),
        allows_without_rules=config.kafka_allow_everyone_if_no_acl_found == "true",
        requests_per_second=config.kafka_quota_requests_per_second,
        bytes_per_second=config.kafka_quota_bytes_per_second,
        tls=_tls(config, listener) if listener.is_encrypted else {},
        principal_rules=config.kafka_ssl_principal_mapping_rules,
        upstream=_upstream(config),
    )


def _tls(config: Config, listener: KafkaListener) -> Mapping[str, str]:
    """Return the settings of TLS by their names; without certificates of clients no authorities."""
    client_auth = listener.client_auth(config.kafka_ssl_client_auth)
    settings = {
        "kafka.ssl.keystore.location": _absolute(config.kafka_ssl_keystore_location),
        "kafka.ssl.keystore.type": config.kafka_ssl_keystore_type,
        "kafka.ssl.keystore.password": config.kafka_ssl_keystore_password,
        "kafka.ssl.key.password": config.kafka_ssl_key_password,
        "kafka.ssl.client.auth": client_auth,
    }
    if client_auth == NO_CLIENT_AUTH:
        return settings
    return settings | {
        "kafka.ssl.truststore.location": _absolute(config.kafka_ssl_truststore_location),
        "kafka.ssl.truststore.type": config.kafka_ssl_truststore_type,
        "kafka.ssl.truststore.password": config.kafka_ssl_truststore_password,
    }


def resolve_secrets(spec: KafkaSpec, data_dir: Path) -> KafkaSpec:
    """Replace references in the settings of TLS by their values; raises `ReferenceBroken`."""
    tls = resolve(spec.security.tls, own=str(data_dir))
    return replace(spec, security=replace(spec.security, tls=tls))


def check_kafka_tls(config: Config) -> None:
    """Raise `TlsRefusedError` or `ReferenceBroken` if an encrypted listener cannot start."""
    spec = kafka_spec(config)
    if spec is not None and spec.security.tls:
        tls = resolve_secrets(spec, config.data_path).security.tls
        ServerTls(tls_settings(tls, KAFKA_TLS))


def flaw_in_reach(config: Config) -> str:
    """Return why a node whose log counts in a store is no part of a cluster of many; "" if it is.

    It may be the only node.
    """
    if config.log_store == LMDB or config.members_principal:
        return ""
    return (
        f"log.store = {config.log_store} without members.principal: this node reaches no other one,"
        f" and none reaches it. To be one of many, {NODES_UNSET}"
    )


def _upstream(config: Config) -> UpstreamSpec:
    protocol = config.kafka_upstream_security_protocol
    has_sasl = protocol in {SASL_PLAINTEXT, SASL_SSL}
    return UpstreamSpec(
        is_encrypted=protocol in {SSL, SASL_SSL},
        truststore=_absolute(config.kafka_upstream_ssl_truststore_location),
        keystore=_absolute(config.kafka_upstream_ssl_keystore_location),
        checks_host=bool(config.kafka_upstream_ssl_endpoint_identification_algorithm),
        mechanism=config.kafka_upstream_sasl_mechanism if has_sasl else "",
        user=config.kafka_upstream_sasl_username,
        password_file=_absolute(config.kafka_upstream_sasl_password_file),
    )


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute()) if path else ""
