"""TLS contexts of listeners, and of nodes for each other, by Kafka's and Connect's keys (`ssl.*`).

A key and its certificates come from a PEM file or text, or from a PKCS12 store. cryptography reads
both, so that what is wrong is said in a sentence before a port opens: an expired certificate, a key
of another one, a password, a store of Java's own. OpenSSL then gets both as one memory file: a
decrypted key never lies on a disk.

`ServerTls` and `ClientTls` are asked for a context for each connection. They make a context of
files that have changed, and connections keep the context that they began with. Files that are
half-written, expired or do not fit together change nothing (`followed_files`).
"""

import os
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    pkcs12,
)

from .followed_files import FileRefused, FollowedFiles, read_owned

_JAVA_STORES: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How a JKS and a JCEKS store begin."""
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)
_TLS_1_3: Final = re.compile(r"TLS_(AES|CHACHA20|SM4)_[A-Z0-9_]+")
"""How the cipher suites of TLS 1.3 are called, by Java and by OpenSSL."""
_JAVA_SUITE: Final = re.compile(r"TLS_([A-Z]+(?:_[A-Z]+)?)_WITH_([A-Z0-9_]+)")

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


_PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey | Ed448PrivateKey
_BLOCK: Final = re.compile(r"(-----BEGIN ([A-Z ]+)-----)([A-Za-z0-9+/=\s]*)(-----END \2-----)")


class TlsRefusedError(FileRefused):
    """A key, a certificate or a setting of TLS cannot be used; nothing was opened."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The `ssl.*` settings of a listener, each as its text; empty: not set."""

    keystore_type: str = ""
    keystore_location: str = ""
    keystore_password: str = ""
    keystore_key: str = ""
    keystore_certificate_chain: str = ""
    key_password: str = ""
    truststore_type: str = ""
    truststore_location: str = ""
    truststore_password: str = ""
    truststore_certificates: str = ""
    client_auth: str = ""
    protocol: str = ""
    enabled_protocols: str = ""
    cipher_suites: str = ""
    prefix: str = "ssl."
    """What comes before these names in the settings of the listener."""

    def key(self, name: str) -> str:
        """Return the whole key of a setting."""
        return self.prefix + name

    def __repr__(self) -> str:
        """Name the files, and none of the secrets."""
        return f"TlsSettings({self.keystore_location!r}, {self.truststore_location!r})"


def tls_settings(values: Mapping[str, str], prefix: str = "ssl.") -> TlsSettings:
    """Return the settings among others whose keys are `prefix` and Kafka's own name."""
    names = {each.name for each in fields(TlsSettings)} - {"prefix"}
    texts = {name: values.get(prefix + name.replace("_", "."), "").strip() for name in names}
    return TlsSettings(**texts, prefix=prefix)


class _Identity(NamedTuple):
    """A private key, its certificate, and those between it and an authority."""

    key: _PrivateKey
    chain: list[x509.Certificate]


class ServerTls:
    """The TLS of one listener, whose files are read again when they change."""

    def __init__(self, settings: TlsSettings, alpn: Sequence[str] = ()) -> None:
        """Read the files; `alpn` are the protocols to agree on. Raises `TlsRefusedError`."""
        self._settings = settings
        self._alpn = [*alpn]
        files = (settings.keystore_location, settings.truststore_location)
        self._loaded = FollowedFiles([Path(each) for each in files if each], self._load)

    @property
    def not_after(self) -> float:
        """The end of the certificate that new connections got last, in seconds since 1970."""
        return self._loaded.content[1]

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection: of the files as they are, if they are good."""
        return self._loaded.current()[0]

    def _load(self) -> tuple[ssl.SSLContext, float]:
        identity = _read_identity(self._settings)
        context = _server_context(self._settings, identity)
        if self._alpn:
            context.set_alpn_protocols(self._alpn)
        return context, identity.chain[0].not_valid_after_utc.timestamp()


class ClientTls:
    """The TLS of a node that connects to other nodes, by the settings of its own listener."""

    def __init__(self, settings: TlsSettings) -> None:
        """Read the files; raises `TlsRefusedError`."""
        self._settings = settings
        files = (settings.keystore_location, settings.truststore_location)
        self._loaded = FollowedFiles([Path(each) for each in files if each], self._load)

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection: of the files as they are, if they are good.

        The certificate of the other end has to be of the authorities of the trust store, and for
        its host.
        """
        return self._loaded.current()

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _limit_protocols(context, self._settings)
        _trust_authorities(context, self._settings)
        _load_identity(context, _read_identity(self._settings))
        return context


def subject_of(der: bytes) -> str:
    """Return the subject of a certificate as RFC 4514 writes it: `CN=ann,O=acme`.

    So Kafka names the principal of a connection.
    """
    return x509.load_der_x509_certificate(der).subject.rfc4514_string()


def end_of(der: bytes) -> float:
    """Return the time from which on a certificate is not valid, in seconds since 1970."""
    return x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()


def _read_identity(settings: TlsSettings) -> _Identity:
    """Read the key and the certificates, and check that they fit and are valid now."""
    identity = _identity(settings)
    where = settings.keystore_location or settings.key("keystore.certificate.chain")
    own = identity.chain[0]
    encoded = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if identity.key.public_key().public_bytes(*encoded) != own.public_key().public_bytes(*encoded):
        raise TlsRefusedError(
            f"the private key and the first certificate in {where} do not belong together"
            f" ({own.subject.rfc4514_string()} has another key): put the key's own certificate"
            " first, then those of its issuers"
        )
    if flaw := _flaw_in_time(own, datetime.now(UTC)):
        raise TlsRefusedError(f"the certificate in {where} {flaw}")
    return identity


def _flaw_in_time(own: x509.Certificate, now: datetime) -> str:
    """Return why a certificate is not valid at a time; "" if it is."""
    begin, end = own.not_valid_before_utc, own.not_valid_after_utc
    name = own.subject.rfc4514_string()
    if now < begin:
        return (
            f"({name}) is valid only from {begin:%Y-%m-%d %H:%M:%S} UTC on, and it is now"
            f" {now:%Y-%m-%d %H:%M:%S} UTC: check the clock of this host"
        )
    return f"({name}) expired at {end:%Y-%m-%d %H:%M:%S} UTC: renew it" if now > end else ""


def _identity(settings: TlsSettings) -> _Identity:
    if settings.keystore_key or settings.keystore_certificate_chain:
        if settings.keystore_location:
            raise TlsRefusedError(
                f"{settings.key('keystore.key')} and {settings.key('keystore.location')} both give"
                " a key: remove one of them"
            )
        text = f"{settings.keystore_key}\n{settings.keystore_certificate_chain}"
        names = f"{settings.key('keystore.key')} and {settings.key('keystore.certificate.chain')}"
        return _identity_in_pem(_with_lines(text), settings, settings.key_password, names)
    if not settings.keystore_location:
        raise TlsRefusedError(
            f"there is no certificate: set {settings.key('keystore.location')} to a PEM file with"
            " a private key and its certificates, or to a PKCS12 store"
        )
    path = Path(settings.keystore_location)
    content = _read(path, is_secret=True)
    if _kind_of(content, settings.keystore_type, path, settings.key("keystore.type")) == "PEM":
        password = settings.key_password or settings.keystore_password
        return _identity_in_pem(content, settings, password, str(path))
    store = _pkcs12(content, settings.keystore_password, path, settings.key("keystore.password"))
    if store.key is None or store.cert is None:
        raise TlsRefusedError(f"{path} has no private key with a certificate")
    others = (each.certificate for each in store.additional_certs)
    return _Identity(_usable(store.key, path), _ordered(store.cert.certificate, [*others]))


def _usable(key: object, where: object) -> _PrivateKey:
    if isinstance(key, _PrivateKey):
        return key
    raise TlsRefusedError(f"the private key in {where} is neither of RSA nor of a curve")


def _ordered(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """Return a certificate, its issuer, the issuer's issuer and so on: a store has no order."""
    chain = [own]
    while others:
        issuer = next((each for each in others if each.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        others.remove(issuer)
        chain.append(issuer)
    return chain


def _identity_in_pem(content: bytes, settings: TlsSettings, password: str, where: str) -> _Identity:
    block = _KEY.search(content)
    if block is None:
        raise TlsRefusedError(
            f"{where} has no private key: a PEM keystore has BEGIN PRIVATE KEY and then its"
            " certificates; is it written completely?"
        )
    is_encrypted = b"ENCRYPTED" in block[0]
    try:
        key = load_pem_private_key(block[0], password.encode() if is_encrypted else None)
    except TypeError:
        raise TlsRefusedError(
            f"the private key in {where} is encrypted: set {settings.key('key.password')}"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        key_of_password = settings.key("key.password")
        why = f"is its password {key_of_password}" if is_encrypted else "is it written completely"
        raise TlsRefusedError(f"the private key in {where} cannot be read: {why}?") from None
    return _Identity(_usable(key, where), _certificates(content, where))


def _with_lines(text: str) -> bytes:
    """Return PEM in a setting, whose lines a .properties file may have joined, in lines again."""

    def in_lines(block: re.Match[str]) -> str:
        body = "".join(block[3].split())
        lines = (body[start : start + 64] for start in range(0, len(body), 64))
        return "\n".join((block[1], *lines, block[4], ""))

    return _BLOCK.sub(in_lines, text).encode()


def _certificates(content: bytes, where: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise TlsRefusedError(
            f"{where} has no whole certificate (BEGIN CERTIFICATE): is it written completely?"
        ) from None


def _pkcs12(content: bytes, password: str, path: Path, key: str) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(content, password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm):
        raise TlsRefusedError(
            f"{path} cannot be opened as a PKCS12 store: is its password {key}, and is it written"
            " completely?"
        ) from None


def _kind_of(content: bytes, kind: str, path: Path, key: str) -> str:
    """Return PEM or PKCS12: what a store is, whatever it is called."""
    if content.startswith(_JAVA_STORES):
        raise TlsRefusedError(
            f"{path} is a store of Java's own format (JKS), which is not read here: keytool"
            f" -importkeystore -srckeystore {path} -destkeystore {path.with_suffix('.p12')}"
            f" -deststoretype PKCS12, then name that file, with {key}=PKCS12"
        )
    is_pem = b"-----BEGIN " in content
    if kind.upper() == "PEM" and not is_pem:
        raise TlsRefusedError(f"{path} is no PEM file, as {key} says: is it written completely?")
    if kind.upper() == "PKCS12" and is_pem:
        raise TlsRefusedError(f"{path} is a PEM file: set {key}=PEM")
    if kind.upper() not in {"", "PEM", "PKCS12", "JKS"}:
        raise TlsRefusedError(f"{key} = {kind} is not supported: write PEM or PKCS12")
    return "PEM" if is_pem else "PKCS12"


def _read(path: Path, *, is_secret: bool) -> bytes:
    """Read a store, which is secret if it has a key."""
    try:
        content = read_owned(path, is_secret=is_secret)
    except FileRefused as refused:
        raise TlsRefusedError(str(refused)) from None
    if not content:
        raise TlsRefusedError(f"{path} is empty: it is no key or trust store")
    return content


def _server_context(settings: TlsSettings, identity: _Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _limit_protocols(context, settings)
    _trust(context, settings)
    _load_identity(context, identity)
    return context


def _load_identity(context: ssl.SSLContext, identity: _Identity) -> None:
    key = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    parts = (key, *(each.public_bytes(Encoding.PEM) for each in identity.chain))
    descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as memory:
            memory.write(b"".join(parts))
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise TlsRefusedError(
            f"OpenSSL refuses the key or certificate ({error.reason or error}): make one with a"
            " stronger key or signature"
        ) from None
    finally:
        os.close(descriptor)


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Ask clients for certificates as the settings say, of the authorities in the trust store."""
    wanted = settings.client_auth.lower() or "none"
    if wanted not in CLIENT_AUTH:
        allowed = ", ".join(CLIENT_AUTH)
        raise TlsRefusedError(
            f"{settings.key('client.auth')} = {wanted} is not supported: write {allowed}"
        )
    if wanted == "none":
        return
    _trust_authorities(context, settings)
    context.verify_mode = CLIENT_AUTH[wanted]


def _trust_authorities(context: ssl.SSLContext, settings: TlsSettings) -> None:
    authorities = _authorities(settings)
    # As in Java any certificate of the store is trusted, also one that another has issued.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(
        cadata=b"".join(each.public_bytes(Encoding.DER) for each in authorities)
    )


def _authorities(settings: TlsSettings) -> Sequence[x509.Certificate]:
    if settings.truststore_certificates:
        text = _with_lines(settings.truststore_certificates)
        return _certificates(text, settings.key("truststore.certificates"))
    if not settings.truststore_location:
        raise TlsRefusedError(
            f"{settings.key('client.auth')} = {settings.client_auth} needs"
            f" {settings.key('truststore.location')}: the authorities of the clients' certificates"
        )
    path = Path(settings.truststore_location)
    content = _read(path, is_secret=False)
    if _kind_of(content, settings.truststore_type, path, settings.key("truststore.type")) == "PEM":
        return _certificates(content, str(path))
    store = _pkcs12(
        content, settings.truststore_password, path, settings.key("truststore.password")
    )
    entries = [*([store.cert] if store.cert else []), *store.additional_certs]
    if not entries:
        raise TlsRefusedError(f"{path} has no certificate")
    return [each.certificate for each in entries]


def _limit_protocols(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set the versions and the cipher suites; versions before TLS 1.2 are refused."""
    enabled = _list(settings.enabled_protocols) or [*VERSIONS]
    protocol = settings.protocol or "TLS"
    for name in (*enabled, *([] if protocol == "TLS" else [protocol])):
        if name not in VERSIONS:
            raise TlsRefusedError(f"{name} is no protocol that is safe: write TLSv1.2, TLSv1.3")
    suites = _list(settings.cipher_suites)
    newest = [each for each in suites if _TLS_1_3.fullmatch(each)]
    older = [_openssl_suite(each) for each in suites if each not in newest]
    excluded = {
        *(["TLSv1.3"] if protocol == "TLSv1.2" or (suites and not newest) else []),
        *(["TLSv1.2"] if suites and not older else []),
    }
    versions = sorted(VERSIONS[each] for each in enabled if each not in excluded)
    if not versions:
        raise TlsRefusedError(
            f"{settings.key('enabled.protocols')}, {settings.key('protocol')} and"
            f" {settings.key('cipher.suites')} leave no version of TLS: remove one of them"
        )
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise TlsRefusedError(
                f"{settings.key('cipher.suites')} = {settings.cipher_suites} has no suite that"
                " OpenSSL knows here: `openssl ciphers` lists them"
            ) from None


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _openssl_suite(name: str) -> str:
    """Return OpenSSL's name of a suite that Java names `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`."""
    java = _JAVA_SUITE.fullmatch(name)
    if java is None:
        return name
    exchange = "" if java[1] == "RSA" else java[1].replace("_", "-") + "-"
    cipher = re.sub(r"AES_(\d+)_", r"AES\1-", java[2]).replace("CBC_", "").replace("_", "-")
    return exchange + cipher.replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305")
