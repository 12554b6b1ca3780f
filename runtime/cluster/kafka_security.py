"""How clients of the Kafka listener prove who they are, and what they may do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

KAFKA_TLS: Final = "kafka.ssl."
"""The prefix of the settings of TLS of the listener."""
NODES_UNSET: Final = "set kafka.listeners with SSL and members.principal, as on the other nodes"
"""What a node has to do that reaches no other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerSpec:
    """Which tokens of OAUTHBEARER count, and whom they name."""

    jwks: str = ""
    """A file, or an https URL, with the keys of the identity provider."""
    issuer: str = ""
    """Who has to have issued them: their claim iss."""
    audiences: tuple[str, ...] = ()
    """The names of which the claim aud has to have one."""
    skew_seconds: int = 30
    """By how much clocks may differ."""
    subject_claim: str = "sub"
    """The claim of tokens that has the name of the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSpec:
    """How the listener connects to the brokers."""

    is_encrypted: bool = False
    truststore: str = ""
    """The file of the authorities of the brokers, in PEM; empty: those of the system."""
    keystore: str = ""
    """The file of the node's own key and certificate, in PEM; empty: it has none."""
    checks_host: bool = True
    """Whether the certificate of a broker has to be for its host."""
    mechanism: str = ""
    """The SASL mechanism of the node's user; empty: it does not log in."""
    user: str = ""
    password_file: str = ""
    """The file with the password of that user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSecurity:
    """The authentication of the listener's clients."""

    sasl: str = ""
    """`here` or `broker`: who verifies credentials; empty: the listener has no SASL."""
    mechanisms: tuple[str, ...] = ()
    """The SASL mechanisms that are offered."""
    users: str = ""
    """The file of users with their keys."""
    bearer: BearerSpec = BearerSpec()
    session_ms: int = 0
    """The longest time until a client has to authenticate again; 0: never."""
    acls: str = ""
    """The file of access control lists; empty: clients may do everything."""
    super_users: tuple[str, ...] = ()
    """The principals that may do everything."""
    allows_without_rules: bool = False
    """Whether everybody may use a resource that no rule is about."""
    requests_per_second: int = 0
    """How many requests each principal may send; 0: any number."""
    bytes_per_second: int = 0
    """How many bytes each principal may send and get of brokers; 0: any number."""
    tls: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The `kafka.ssl.*` settings of the listener; empty: it is not encrypted. Some are secret."""
    nodes: tuple[str, ...] = ()
    """The principals of nodes, by their certificates: they send what is sent on the owner's host.
    """
    principal_rules: str = "DEFAULT"
    """How the subjects of certificates become names of users."""
    upstream: UpstreamSpec = UpstreamSpec()

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Return the value of a decoded JSON object."""
        values: dict[str, Any] = dict(content)
        for name in ("mechanisms", "super_users", "nodes"):
            values[name] = tuple(content.get(name, ()))
        bearer = dict(content.get("bearer", {}))
        audiences = tuple(bearer.pop("audiences", ()))
        values["bearer"] = BearerSpec(audiences=audiences, **bearer)
        values["upstream"] = UpstreamSpec(**content.get("upstream", {}))
        return cls(**values)


NO_SECURITY = KafkaSecurity()
