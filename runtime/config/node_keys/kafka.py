"""The settings of the listener for Kafka clients: its address, its security, its groups.

Where a broker has a setting of that meaning, this one has its name with `kafka.` before it. A
setting alone is checked by its domain. What several of them say together is checked by
`flaws_in_kafka`, in `contradictions.py`.
"""

from dataclasses import dataclass
from typing import Final

from ....actors.settings import word
from ....events.placement import split_list
from ...security.kafka.listeners import (
    NO_CLIENT_AUTH,
    PLAINTEXT,
    PROTOCOLS,
    REQUESTED,
    REQUIRED,
    parse_address,
    parse_kafka_listener,
    split_principals,
)
from ...security.kafka.principal_mapping import parse_mapping
from . import kinds
from .kinds import FILE, INT32_MAX, MILLISECONDS, MILLISECONDS_OR_NONE, SECRET, TEXT, number
from .setting import SAME, Domain, setting

HERE: Final = "here"
"""The value of `kafka.sasl` for credentials that fairlead verifies itself."""
BY_BROKER: Final = "broker"
PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (*SCRAM, PLAIN, OAUTHBEARER)
MOST_SKEW: Final = 3_600
MOST_SHARDS: Final = 64
MOST_CONNECTIONS: Final = 100_000
MOST_GROUPS: Final = 100_000
OFFERED: Final = "127.0.0.1:9092"


def _check_listener(text: str) -> str:
    if text:
        parse_kafka_listener(text)
    return text


def _check_servers(text: str) -> str:
    for each in split_list(text):
        parse_address(each)
    return text


def _check_mechanisms(text: str) -> str:
    if not (names := split_list(text)) or not set(names) <= set(MECHANISMS):
        raise ValueError
    return text


def _check_rules(text: str) -> str:
    parse_mapping(text)
    return text


def _check_principals(text: str) -> str:
    if not all(each.startswith("User:") for each in split_principals(text)):
        raise ValueError
    return text


_LISTENER: Final = Domain(
    _check_listener, f"one URL such as PLAINTEXT://{OFFERED} or SASL_SSL://HOST:PORT, or nothing"
)
_SERVERS: Final = Domain(_check_servers, "HOST:PORT, with commas between several, or nothing")
_HOST: Final = Domain(str.strip, "a host's name or address, or nothing")
_SASL: Final = Domain(word(HERE, BY_BROKER), f"{HERE} or {BY_BROKER}")
_UPSTREAM_MECHANISM: Final = Domain(
    word("", PLAIN, *SCRAM), f"{PLAIN}, {' or '.join(SCRAM)}, or nothing"
)
_PROTOCOL: Final = Domain(word(*PROTOCOLS), ", ".join(PROTOCOLS))
_CLIENT_AUTH: Final = Domain(
    word("", REQUIRED, REQUESTED, NO_CLIENT_AUTH),
    f"{REQUIRED}, {REQUESTED}, {NO_CLIENT_AUTH}, or nothing",
)
_RULES: Final = Domain(_check_rules, "DEFAULT, and rules RULE:PATTERN/REPLACEMENT/[LU]")
_IDENTIFICATION: Final = Domain(word("", "https"), "https, or nothing")
_MECHANISMS: Final = Domain(_check_mechanisms, f"of {', '.join(MECHANISMS)}, with commas between")
_PRINCIPALS: Final = Domain(
    _check_principals, "principals such as User:ann, with semicolons between several, or nothing"
)


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
        "The brokers behind that listener.",
        "bootstrap.servers",
    )
    kafka_advertised_host_name: str = setting(
        _HOST, "", "The host name that Kafka clients get. Empty: that of kafka.listeners."
    )
    kafka_plaintext: str = setting(
        kinds.PLAINTEXT,
        kinds.LOOPBACK_ONLY,
        "Where kafka.listeners may be without encryption; with anywhere, every client that"
        " reaches it may connect.",
    )
    kafka_upstream_security_protocol: str = setting(
        _PROTOCOL, PLAINTEXT, "How the listener connects to the brokers.", "security.protocol"
    )
    kafka_upstream_ssl_truststore_location: str = setting(
        FILE,
        "",
        "The authorities of the brokers' certificates, in PEM. Empty: those of the system.",
        "ssl.truststore.location",
    )
    kafka_upstream_ssl_keystore_location: str = setting(
        FILE,
        "",
        "The private key and certificate of the node for the brokers, in PEM. Empty: none.",
        "ssl.keystore.location",
    )
    kafka_upstream_ssl_endpoint_identification_algorithm: str = setting(
        _IDENTIFICATION,
        "https",
        "Whether the certificate of a broker has to be for its host; empty: any host.",
        "ssl.endpoint.identification.algorithm",
    )
    kafka_upstream_sasl_mechanism: str = setting(
        _UPSTREAM_MECHANISM, "", "The mechanism of the node's own user.", "sasl.mechanism"
    )
    kafka_upstream_sasl_username: str = setting(
        TEXT, "", "The name of the node's own user at the brokers."
    )
    kafka_upstream_sasl_password_file: str = setting(
        FILE, "", "The file with the password of that user, for its owner only."
    )
    kafka_ssl_keystore_location: str = setting(
        FILE,
        "",
        "The private key and certificates of an SSL or SASL_SSL listener: a PEM file with both, or"
        " a PKCS12 store; read again when it changes.",
        "ssl.keystore.location",
    )
    kafka_ssl_keystore_type: str = setting(
        TEXT, "", "PEM or PKCS12. Empty: what the file is.", "ssl.keystore.type"
    )
    kafka_ssl_keystore_password: str = setting(
        SECRET,
        "",
        "The password of a PKCS12 keystore; may be ${file:PATH:KEY}.",
        "ssl.keystore.password",
    )
    kafka_ssl_key_password: str = setting(
        SECRET, "", "The password of an encrypted private key in PEM.", "ssl.key.password"
    )
    kafka_ssl_truststore_location: str = setting(
        FILE,
        "",
        "The authorities of the certificates that clients of an SSL listener must have: PEM, or a"
        " PKCS12 store.",
        "ssl.truststore.location",
    )
    kafka_ssl_truststore_type: str = setting(
        TEXT, "", "PEM or PKCS12. Empty: what the file is.", "ssl.truststore.type"
    )
    kafka_ssl_truststore_password: str = setting(
        SECRET, "", "The password of a PKCS12 truststore.", "ssl.truststore.password"
    )
    kafka_ssl_client_auth: str = setting(
        _CLIENT_AUTH,
        "",
        "Whether clients need a certificate. Empty: required for SSL, none for SASL_SSL.",
        "ssl.client.auth",
    )
    kafka_ssl_principal_mapping_rules: str = setting(
        _RULES,
        "DEFAULT",
        "How the subject of a client's certificate becomes the name of a user; patterns of RE2.",
        "ssl.principal.mapping.rules",
    )
    kafka_sasl: str = setting(
        _SASL,
        HERE,
        "Who verifies what clients of a SASL listener send: fairlead, or the broker behind, which"
        " then serves each client as its own user.",
    )
    kafka_sasl_oauthbearer_jwks_endpoint_url: str = setting(
        kinds.JWKS,
        "",
        "The keys by which fairlead verifies tokens of OAUTHBEARER, a JWKS document: a file, or an"
        " https URL.",
        "sasl.oauthbearer.jwks.endpoint.url",
    )
    kafka_sasl_oauthbearer_expected_issuer: str = setting(
        TEXT,
        "",
        "The identity provider whose tokens count: their claim iss.",
        "sasl.oauthbearer.expected.issuer",
    )
    kafka_sasl_oauthbearer_expected_audience: str = setting(
        TEXT,
        "",
        "For whom tokens have to be: their claim aud has one of these names, with commas between.",
        "sasl.oauthbearer.expected.audience",
    )
    kafka_sasl_oauthbearer_clock_skew_seconds: int = setting(
        number(0, MOST_SKEW, "s"),
        30,
        "By how much the clocks of the identity provider and of this node may differ.",
        "sasl.oauthbearer.clock.skew.seconds",
    )
    kafka_sasl_oauthbearer_sub_claim_name: str = setting(
        TEXT,
        "sub",
        "The claim of tokens that has the name of the user.",
        "sasl.oauthbearer.sub.claim.name",
    )
    kafka_sasl_enabled_mechanisms: str = setting(
        _MECHANISMS,
        ",".join(SCRAM),
        "The SASL mechanisms of a SASL_PLAINTEXT or SASL_SSL listener. Of PLAIN the listener sees"
        " the password itself.",
        "sasl.enabled.mechanisms",
    )
    kafka_sasl_users: str = setting(
        FILE,
        "",
        "The users of such a listener with their keys, by `fairlead kafka-user`; read again"
        " when it changes. Empty: kafka-users.json in the data folder.",
    )
    kafka_connections_max_reauth_ms: int = setting(
        MILLISECONDS_OR_NONE,
        0,
        "After which time a client of such a listener has to authenticate again (KIP-368). 0:"
        " never.",
        "connections.max.reauth.ms",
    )
    kafka_acls: str = setting(
        FILE,
        "",
        "The file of access control lists of groups and topics, read again when it changes; broker:"
        " those of the broker behind. Empty: clients may do everything.",
    )
    kafka_super_users: str = setting(
        _PRINCIPALS, "", "The principals that may do everything.", "super.users"
    )
    members_principal: str = setting(
        _PRINCIPALS,
        "",
        "The principals of the cluster's nodes, by their certificates at an SSL listener: they"
        " speak for their workers and for people. Empty: no client does.",
    )
    kafka_allow_everyone_if_no_acl_found: str = setting(
        kinds.TRUE_OR_FALSE,
        "false",
        "Whether everybody may use a group or topic that no rule in kafka.acls is about.",
        "allow.everyone.if.no.acl.found",
    )
    kafka_quota_requests_per_second: int = setting(
        number(0, INT32_MAX, "requests/s"),
        0,
        "The most requests of each principal per second; beyond, its connections pause (KIP-219)."
        " 0: any number.",
    )
    kafka_quota_bytes_per_second: int = setting(
        number(0, INT32_MAX, "bytes/s"),
        0,
        "The most bytes of each principal per second, in requests and proxied responses. 0: any"
        " number.",
    )
    kafka_group_shards: int = setting(
        number(1, MOST_SHARDS, "processes"),
        2,
        "The number of processes for the groups of Kafka clients; it cannot change once the first"
        " group exists.",
        "offsets.topic.num.partitions",
    )
    offsets_retention_minutes: int = setting(
        number(1, INT32_MAX, "minutes"),
        10_080,
        "How long unused offsets of Kafka clients are kept, after their commit and after their"
        " group became empty.",
        SAME,
    )
    offsets_retention_check_interval_ms: int = setting(
        MILLISECONDS, 600_000, "How often a group is searched for such offsets.", SAME
    )
    kafka_max_connections: int = setting(
        number(1, MOST_CONNECTIONS, "connections"),
        10_000,
        "The most connections of all Kafka clients.",
        "max.connections",
    )
    kafka_max_connections_per_ip: int = setting(
        number(1, MOST_CONNECTIONS, "connections"),
        10_000,
        "The most connections from one address.",
        "max.connections.per.ip",
    )
    group_protocols_allowed: str = setting(
        kinds.GROUP_PROTOCOLS,
        "connect,classic,consumer",
        "By which protocols Kafka clients may join groups. The first join by another one is refused"
        " (UNSUPPORTED_VERSION), and its calls are not advertised.",
    )
    kafka_max_groups: int = setting(
        number(1, MOST_GROUPS, "groups"),
        MOST_GROUPS,
        "The most groups of Kafka clients in each process of groups (kafka.group.shards).",
    )
    kafka_max_members: int = setting(
        number(1, INT32_MAX, "members"),
        100_000,
        "The most members of all these groups.",
    )
    kafka_max_metadata_bytes: int = setting(
        number(1 << 20, INT32_MAX, "bytes"),
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
