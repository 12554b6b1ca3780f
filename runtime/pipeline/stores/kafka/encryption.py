"""Conversion of the store keys of Java's clients to librdkafka's settings, and back.

librdkafka reads PEM, and PKCS12 only as a keystore. A PKCS12 truststore is converted to PEM here. A
JKS store is refused, with the command that converts it to PKCS12. Java reads PEM as well, but a
private key only as PKCS8.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from ...spi.config import ConfigInvalid, Definition, Importance, Width
from ...spi.keys.kinds import secret_key, text_key
from ...untrusted.plain_file import read_plain_file, why_not

TRUSTSTORE: Final = "ssl.truststore.location"
KEYSTORE: Final = "ssl.keystore.location"
TRUSTED: Final = "ssl.truststore.certificates"
_TRUST_PASSWORD: Final = "ssl.truststore.password"  # noqa: S105  # names of keys
_STORE_PASSWORD: Final = "ssl.keystore.password"  # noqa: S105  # likewise
_CHAIN: Final = "ssl.keystore.certificate.chain"
_KEY: Final = "ssl.keystore.key"
_HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"
_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
JAVA_KEYS: Final = (
    TRUSTSTORE,
    _TRUST_PASSWORD,
    TRUSTED,
    KEYSTORE,
    _STORE_PASSWORD,
    _CHAIN,
    _KEY,
    _HOST_CHECK,
    *_TYPES,
)
"""The names without the prefix of an end."""
_PEM: Final = b"-----BEGIN"
_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


def store_keys(end: str) -> Sequence[Definition]:
    """Return the store keys of one end of a pipeline."""
    low = Importance.LOW
    return (
        text_key(
            f"{end}.{TRUSTSTORE}",
            "A file of each worker, PEM or PKCS12, with the trusted authorities.",
            width=Width.LONG,
        ),
        secret_key(f"{end}.{_TRUST_PASSWORD}", "The password of a PKCS12 truststore."),
        text_key(f"{end}.{TRUSTED}", "The same authorities as text, in PEM.", width=Width.LONG),
        text_key(
            f"{end}.{KEYSTORE}",
            "A file of each worker, PEM or PKCS12, with the client's private key and certificate.",
            width=Width.LONG,
        ),
        secret_key(f"{end}.{_STORE_PASSWORD}", "The password of a PKCS12 keystore."),
        text_key(f"{end}.{_CHAIN}", "The client's certificate as text, in PEM.", width=Width.LONG),
        secret_key(f"{end}.{_KEY}", "The client's private key, in PEM.", width=Width.LONG),
        text_key(
            f"{end}.{_HOST_CHECK}",
            "`https`: a broker's certificate must name its host; empty: there is no such check.",
            "https",
            importance=low,
        ),
        *(
            text_key(
                f"{end}.{each}",
                "Accepted for compatibility; the type of the file is detected.",
                importance=low,
            )
            for each in _TYPES
        ),
    )


def store_settings(end: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings for stores; `options` without the end's prefix.

    Raises `ConfigInvalid` for a file that cannot be used.
    """
    settings: dict[str, str] = {}
    if path := options.get(TRUSTSTORE):
        settings |= _trusted(end, path, options.get(_TRUST_PASSWORD, ""))
    if path := options.get(KEYSTORE):
        settings |= _own(end, path, options.get(_STORE_PASSWORD, ""))
    texts = {"ssl.ca.pem": TRUSTED, "ssl.certificate.pem": _CHAIN, "ssl.key.pem": _KEY}
    settings |= {setting: options[key] for setting, key in texts.items() if options.get(key)}
    if options.get(_HOST_CHECK, "https") == "":
        settings[_HOST_CHECK] = "none"
    return settings


def java_stores(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Java's clients for those of librdkafka that a config leads to.

    Raises `ConfigInvalid` for a file that cannot be used.
    """
    java = {_HOST_CHECK: "" if settings.get(_HOST_CHECK) == "none" else "https"}
    if authorities := _pem_of(settings, "ssl.ca"):
        java |= {_TYPES[0]: "PEM", TRUSTED: authorities.decode()}
    if (chain := _pem_of(settings, "ssl.certificate")) and (key := _pem_of(settings, "ssl.key")):
        private = _as_pkcs8(key, settings.get("ssl.key.password", ""))
        java |= {_TYPES[1]: "PEM", _CHAIN: chain.decode(), _KEY: private}
    elif path := settings.get(KEYSTORE):
        password = settings.get(_STORE_PASSWORD, "")
        java |= {_TYPES[1]: "PKCS12", KEYSTORE: path, _STORE_PASSWORD: password}
    return java


def _pem_of(settings: Mapping[str, str], name: str) -> bytes:
    """Return what a setting has as text, or in a file."""
    path = settings.get(f"{name}.location")
    return _read(f"{name}.location", path) if path else settings.get(f"{name}.pem", "").encode()


def _as_pkcs8(key: bytes, password: str) -> str:
    try:
        private = load_pem_private_key(key, password.encode() or None)
    except (TypeError, ValueError) as error:
        raise ConfigInvalid(f"ssl.key: it cannot be read: {error}") from None
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _trusted(end: str, path: str, password: str) -> Mapping[str, str]:
    store = _read(f"{end}.{TRUSTSTORE}", path)
    if _PEM in store:
        return {"ssl.ca.location": path}
    try:
        opened = load_pkcs12(store, password.encode() or None)
    except ValueError:
        raise ConfigInvalid(
            f"{end}.{TRUSTSTORE}: {path} is neither PEM nor PKCS12, or {end}.{_TRUST_PASSWORD} "
            "does not open it"
        ) from None
    certificates = [*([opened.cert] if opened.cert else ()), *opened.additional_certs]
    texts = [each.certificate.public_bytes(Encoding.PEM).decode() for each in certificates]
    return {"ssl.ca.pem": "".join(texts)}


def _own(end: str, path: str, password: str) -> Mapping[str, str]:
    if _PEM in _read(f"{end}.{KEYSTORE}", path):
        return {"ssl.certificate.location": path, "ssl.key.location": path}
    return {KEYSTORE: path, _STORE_PASSWORD: password}


def _read(key: str, path: str) -> bytes:
    try:
        store = read_plain_file(path)
    except OSError as error:
        raise ConfigInvalid(f"{key}: {path} cannot be read: {why_not(error)}") from None
    if store.startswith(_JKS):
        raise ConfigInvalid(
            f"{key}: {path} is a JKS store, which only Java can read: convert it to PKCS12 by "
            f"keytool -importkeystore -srckeystore {path} -destkeystore … -deststoretype PKCS12"
        )
    return store
