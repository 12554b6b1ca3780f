"""The access rules of a listener, opened from its spec: who may come in, by which files."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ...cluster.kafka_security import KAFKA_TLS, BearerSpec, KafkaSecurity
from ...config.secrets import Vault
from ...security.followed_files import FollowedFiles, parse_owned
from ...security.kafka.principal_mapping import MappingRule, map_subject, parse_mapping
from ...security.kafka.users import Users, load_users
from ...security.proofs.signed_tokens import SignedTokens
from ...security.tls import ServerTls, subject_of, tls_settings
from ..broker.login import UNPROTECTED, BrokerSecurity, open_broker_security
from ..wire.bounds import NOT_AUTHENTICATED, FrameRefused
from .acls import Authorizer, parse_acls
from .authenticators import BrokerAuthenticator, OwnAuthenticator
from .bearer import BearerExchange
from .login_throttle import LoginThrottle
from .mechanisms import Credentials
from .member_secrets import MemberSecrets
from .quotas import ClientQuotas
from .session import ANONYMOUS, SaslAuthenticator

SHOWN: Final = 200
"""The number of characters of a principal that an answer has."""
BY_BROKER: Final = "broker"
"""The value of `kafka.sasl` and `kafka.acls` for what the broker decides."""


class ListenerAccess(NamedTuple):
    """The access rules of one listener."""

    authenticator: SaslAuthenticator | None = None
    """Authenticates clients; None: they are who their connection says."""
    session_seconds: float = 0.0
    """The longest time until a client has to authenticate again; 0: never."""
    authorizer: Authorizer | None = None
    """Decides what clients may do; None: everything."""
    is_by_broker: bool = False
    """Whether requests that are passed on reach the broker as those of the client."""
    tls: ServerTls | None = None
    """The encryption of connections; None: there is none."""
    principal_rules: Sequence[MappingRule] = ()
    """How subjects of certificates become names."""
    upstream: BrokerSecurity = UNPROTECTED
    """How the listener itself connects to brokers."""
    quotas: ClientQuotas | None = None
    """The quotas of principals; None: there are none."""
    nodes: frozenset[str] = frozenset()
    """The principals of nodes."""
    secrets: MemberSecrets = MemberSecrets()
    """What members may have of the secrets of connectors."""
    refreshes: Sequence[Callable[[], bool]] = ()
    """Functions that read a file again if it has changed, and return whether there is news."""

    def refresh(self) -> bool:
        """Read all files again that have changed; return whether there is news."""
        return sum(refresh() for refresh in self.refreshes) > 0

    @property
    def upstream_of_clients(self) -> BrokerSecurity:
        """How connections to brokers are made for clients, who may log in there themselves."""
        return self.upstream.without_login() if self.is_by_broker else self.upstream

    def name_by_certificate(self, certificate: bytes | None) -> str:
        """Return the principal of a TLS client; raises `FrameRefused` if no rule has a name."""
        if certificate is None:
            return ANONYMOUS
        subject = subject_of(certificate)
        if (name := map_subject(self.principal_rules, subject)) is None:
            raise FrameRefused(NOT_AUTHENTICATED, "no rule matches the certificate's subject")
        return f"User:{name}"

    def flaw_in_node(self, principal: str, certificate: bytes | None) -> str:
        """Return why a client is no node; "" if it is one. Passwords and tokens prove none."""
        if self.tls is None or certificate is None or self.authenticator is not None:
            return "only a client with a certificate, at an SSL listener, may be a node"
        if principal not in self.nodes:
            return f"members.principal does not have {principal[:SHOWN]!a}"
        return ""


def open_access(spec: KafkaSecurity, secret: bytes) -> ListenerAccess:
    """Read the files of a spec; `secret` is the cluster's.

    Raises `OSError`, `FileRefused`, `TlsRefusedError`.
    """
    refreshes: list[Callable[[], bool]] = []
    authenticator = _open_authenticator(spec, secret, refreshes)
    authorizer = _open_authorizer(spec, refreshes) if spec.acls else None
    return ListenerAccess(
        authenticator,
        spec.session_ms / 1_000,
        authorizer,
        spec.sasl == BY_BROKER,
        ServerTls(tls_settings(spec.tls, KAFKA_TLS)) if spec.tls else None,
        parse_mapping(spec.principal_rules),
        open_broker_security(spec.upstream),
        _open_quotas(spec),
        frozenset(spec.nodes),
        MemberSecrets(Vault(secret)),
        refreshes,
    )


def _open_quotas(spec: KafkaSecurity) -> ClientQuotas | None:
    limits = spec.requests_per_second, spec.bytes_per_second
    return ClientQuotas(*limits) if any(limits) else None


def _open_authenticator(
    spec: KafkaSecurity, secret: bytes, refreshes: list[Callable[[], bool]]
) -> SaslAuthenticator | None:
    throttle = LoginThrottle()
    if spec.sasl == BY_BROKER:
        return BrokerAuthenticator(spec.mechanisms, spec.bearer.subject_claim, throttle)
    if not spec.sasl:
        return None
    path = Path(spec.users)
    users: FollowedFiles[Users] = FollowedFiles([path], partial(load_users, path))
    credentials = Credentials(users, secret)
    refreshes.append(credentials.refresh)
    return OwnAuthenticator(spec.mechanisms, credentials, _open_bearer(spec.bearer), throttle)


def _open_bearer(spec: BearerSpec) -> Callable[[], BearerExchange]:
    tokens = SignedTokens(spec.jwks, spec.issuer, spec.audiences, spec.skew_seconds)
    return partial(BearerExchange, tokens, spec.skew_seconds, spec.subject_claim)


def _open_authorizer(spec: KafkaSecurity, refreshes: list[Callable[[], bool]]) -> Authorizer:
    super_users, is_open = frozenset(spec.super_users), spec.allows_without_rules
    if spec.acls == BY_BROKER:
        return Authorizer(None, super_users, allows_without_rules=is_open)
    path = Path(spec.acls)
    file = FollowedFiles([path], partial(parse_owned, path, parse_acls))
    authorizer = Authorizer(file.content, super_users, allows_without_rules=is_open)

    def refresh() -> bool:
        is_new = file.refresh()
        authorizer.rules = file.content
        return is_new

    refreshes.append(refresh)
    return authorizer
