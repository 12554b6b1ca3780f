"""The settings of the REST interface, and their validation.

They have Connect's names, and those of `ssl.*` Kafka's meaning. `listeners.https.ssl.*` is the
same for listeners of https alone: as in Connect, `ssl.*` then does not count for them
(`runtime/config/sources.py` reads one as the other).

A listener that other machines reach needs encryption, and callers that prove who they are.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....actors.settings import word
from ....actors.transport.ports import LOOPBACK
from ....events.placement import split_list
from ...security.rest_answers import ANY, METHODS, check_origin, parse_header_rules
from ...security.rest_listeners import REST_PORT, RestListener, parse_listeners
from ...security.settings import OPEN, Authentication
from . import kinds
from .group import GroupKeys
from .setting import SAME, Contradiction, Domain, setting

_PREFIX_PATTERN: Final = re.compile(r"(/(?!\.+(/|$))[A-Za-z0-9._~-]+)+", re.ASCII)
AS_LISTENERS: Final = "listeners"
"""The value of `admin.listeners` that means those of `listeners`."""


def _check_listeners(text: str) -> str:
    parse_listeners(text)
    return text


def _check_admin_listeners(text: str) -> str:
    return text if text == AS_LISTENERS else _check_listeners(text)


def _check_origins(text: str) -> str:
    return ",".join(map(check_origin, split_list(text)))


def _check_methods(text: str) -> str:
    methods = [each.upper() for each in split_list(text)]
    for each in methods:
        if each not in METHODS:
            raise ValueError(f"{each!r} is not a method")
    return ",".join(methods)


def _check_prefix(text: str) -> str:
    prefix = text.rstrip("/")
    if prefix and not _PREFIX_PATTERN.fullmatch(prefix):
        raise ValueError(f"{text!r} is no path of letters, digits and . _ ~ -")
    return prefix


def _check_headers(text: str) -> str:
    parse_header_rules(text)
    return text


_URLS: Final = f"URLs such as http://{LOOPBACK}:{REST_PORT}, https://HOST:PORT or unix:///PATH"
_LISTENERS: Final = Domain(_check_listeners, f"{_URLS}, with commas between them, or nothing")
_ADMIN: Final = Domain(_check_admin_listeners, f"{_URLS}, or listeners, or nothing")
_ORIGINS: Final = Domain(
    _check_origins, "origins such as https://ui.example, with commas between them, *, or nothing"
)
_PREFIX: Final = Domain(_check_prefix, "a path such as /fairlead, or nothing")
_ALLOWED_METHODS: Final = Domain(_check_methods, f"some of {', '.join(METHODS)}, or nothing")
_HEADERS: Final = Domain(
    _check_headers, "rules such as `set X-Frame-Options: DENY`, with commas between them"
)


def flaws_in_rest(
    settings: "RestKeys", listeners: Sequence[RestListener], key: str
) -> Iterator[Contradiction]:
    """Yield conflicts between some listeners, named by `key`, and the other settings."""
    for each in listeners:
        yield from _flaws_in_listener(settings, each, key)


def _flaws_in_listener(
    settings: "RestKeys", listener: RestListener, key: str
) -> Iterator[Contradiction]:
    at = f"{key} has {listener.url}"
    methods = settings.access().authentication
    if listener.is_encrypted and not (settings.ssl_keystore_location or settings.ssl_keystore_key):
        yield Contradiction(
            (key, "ssl.keystore.location"),
            f"{at}, which needs a certificate: set ssl.keystore.location to a PEM file with a"
            " private key and its certificates, or to a PKCS12 store",
        )
    asks = settings.ssl_client_auth != "none"
    if listener.is_encrypted and Authentication.MTLS in methods and not asks:
        yield Contradiction(
            ("rest.authentication", "ssl.client.auth"),
            f"{at}, and rest.authentication = mtls needs clients to be asked for a certificate: set"
            " ssl.client.auth = requested (or required) and ssl.truststore.location",
        )
    if listener.is_local:
        return
    if methods == OPEN.authentication:
        yield Contradiction(
            (key, "rest.authentication"),
            f"{at}, which is not a loopback address, and every caller there could do everything:"
            " set rest.authentication (docs/operating/access.md), or listen on loopback",
        )
    if not listener.is_encrypted and settings.rest_plaintext != kinds.ANYWHERE:
        yield Contradiction(
            (key, "rest.plaintext"),
            f"{at}, which is not a loopback address, and whoever is on the way there could read"
            " and change everything: use https:// (docs/operating/doors.md), or set"
            " rest.plaintext = anywhere where only a proxy or a pod's own network reaches it",
        )


def flaws_in_certificates(
    settings: "RestKeys", listeners: Sequence[RestListener]
) -> Iterator[Contradiction]:
    """Yield that nobody can prove who they are: that takes a certificate, and no port is https."""
    is_needed = settings.access().authentication == (Authentication.MTLS,)
    ports = [each for each in listeners if not each.is_unix]
    if is_needed and ports and not any(each.is_encrypted for each in ports):
        yield Contradiction(
            ("rest.authentication", "listeners"),
            "rest.authentication = mtls, and no listener is https://, by which alone clients send"
            " certificates: add one, or another kind of authentication",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RestKeys(GroupKeys):
    """The settings of a node's REST interface."""

    listeners: str = setting(
        _LISTENERS,
        f"http://{LOOPBACK}:{REST_PORT}",
        "Where the REST interface listens: http, https, Unix sockets, several with commas. Port 0:"
        " a free one. The socket run/rest.sock of data.dir is always there as well; empty: that"
        " alone.",
        SAME,
    )
    admin_listeners: str = setting(
        _ADMIN,
        AS_LISTENERS,
        "Where /admin (the levels of loggers) is served, and nothing else. listeners: where"
        " everything is. Empty: nowhere.",
        SAME,
    )
    rest_plaintext: str = setting(
        kinds.PLAINTEXT,
        kinds.LOOPBACK_ONLY,
        "Where listeners may be without encryption; with anywhere, whatever is on the way can read"
        " along: for a proxy, or a pod's own network.",
    )
    rest_advertised_host_name: str = setting(
        kinds.HOST, "", "The host name of this node for others. Empty: that of listeners.", SAME
    )
    rest_advertised_port: int = setting(
        kinds.PORT, 0, "The port of this node for others. 0: that of listeners.", SAME
    )
    rest_allowed_hosts: str = setting(
        kinds.HOSTS,
        "",
        "More host names, with commas, that requests to the REST interface and the origins of"
        " their pages may have: those of a proxy in front of it.",
    )
    rest_path_prefix: str = setting(
        _PREFIX,
        "",
        "What the paths of the REST interface and its page may begin with: the path below which a"
        " proxy shows them. Without it they are served as well.",
    )
    ssl_keystore_location: str = setting(
        kinds.FILE,
        "",
        "The private key and the certificates of https listeners: a PEM file with both, or a"
        " PKCS12 store; read again when it changes. listeners.https.ssl.NAME is ssl.NAME, and then"
        " no ssl.NAME counts, as in Connect.",
        SAME,
    )
    ssl_keystore_type: str = setting(
        kinds.TEXT, "", "PEM or PKCS12. Empty: what the file is.", SAME
    )
    ssl_keystore_password: str = setting(
        kinds.SECRET, "", "The password of a PKCS12 keystore; may be ${file:PATH:KEY}.", SAME
    )
    ssl_keystore_key: str = setting(
        kinds.SECRET, "", "The private key itself, in PEM, instead of a file.", SAME
    )
    ssl_keystore_certificate_chain: str = setting(
        kinds.TEXT, "", "The certificates of ssl.keystore.key, in PEM.", SAME
    )
    ssl_key_password: str = setting(
        kinds.SECRET, "", "The password of an encrypted private key in PEM.", SAME
    )
    ssl_truststore_location: str = setting(
        kinds.FILE, "", "The authorities of clients' certificates: PEM, or a PKCS12 store.", SAME
    )
    ssl_truststore_type: str = setting(
        kinds.TEXT, "", "PEM or PKCS12. Empty: what the file is.", SAME
    )
    ssl_truststore_password: str = setting(
        kinds.SECRET, "", "The password of a PKCS12 truststore.", SAME
    )
    ssl_truststore_certificates: str = setting(
        kinds.TEXT, "", "Those authorities themselves, in PEM, instead of a file.", SAME
    )
    ssl_client_auth: str = setting(
        Domain(word("none", "requested", "required"), "none, requested or required"),
        "none",
        "Whether clients of https are asked for a certificate, and must have one.",
        SAME,
    )
    ssl_protocol: str = setting(
        kinds.TEXT, "", "The newest version of TLS: TLSv1.3 or TLSv1.2. Empty: TLSv1.3.", SAME
    )
    ssl_enabled_protocols: str = setting(
        kinds.TEXT, "", "The versions of TLS, of TLSv1.2 and TLSv1.3. Empty: both.", SAME
    )
    ssl_cipher_suites: str = setting(
        kinds.TEXT,
        "",
        "The cipher suites, by Java's or OpenSSL's names. Empty: OpenSSL's own.",
        SAME,
    )
    access_control_allow_origin: str = setting(
        _ORIGINS,
        "",
        "The origins whose pages may use the REST interface, with commas; * in a host is any part"
        f" of it. {ANY} alone: any page may read.",
        SAME,
    )
    access_control_allow_methods: str = setting(
        _ALLOWED_METHODS, "", "The methods that those pages may use. Empty: GET, POST, HEAD.", SAME
    )
    response_http_headers_config: str = setting(
        _HEADERS,
        "",
        "Headers of every answer: rules of set, add, setDate, addDate, NAME: VALUE, with commas;"
        " a rule with a comma in double quotes.",
        SAME,
    )
