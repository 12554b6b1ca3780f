"""Certificates for tests: an authority of a test's own, and what it issues."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

DAY: Final = timedelta(days=1)
LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _encryption(password: str) -> KeySerializationEncryption:
    return BestAvailableEncryption(password.encode()) if password else NoEncryption()


@dataclass(frozen=True)
class Issued:
    """A private key and its certificates, the own one first."""

    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...]

    def key_pem(self, password: str = "") -> bytes:
        """Return the key as PKCS8."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password))

    def chain_pem(self) -> bytes:
        """Return the certificates."""
        return b"".join(each.public_bytes(Encoding.PEM) for each in self.chain)

    def pem(self, password: str = "") -> bytes:
        """Return key and certificates, as Kafka has them in one file."""
        return self.key_pem(password) + self.chain_pem()

    def pkcs12(self, password: str) -> bytes:
        """Return key and certificates as a PKCS12 store."""
        own, *others = self.chain
        return pkcs12.serialize_key_and_certificates(
            b"own", self.key, own, others, _encryption(password)
        )

    def write(self, path: Path, password: str = "") -> Path:
        """Write a PEM file that only its owner may read."""
        path.touch(mode=0o600)
        path.write_bytes(self.pem(password))
        return path


class Authority:
    """An authority of certificates."""

    def __init__(
        self, name: str = "authority of a test", issuer: "Authority | None" = None
    ) -> None:
        """Make its key; without an issuer it vouches for itself."""
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        by = issuer or self
        self.certificate: Final = by.sign(self._name, self._key, (), is_authority=True)
        self._above = () if issuer is None else (self.certificate, *issuer.chain_above)

    @property
    def chain_above(self) -> tuple[x509.Certificate, ...]:
        """The certificates between those it issues and the authority at the top."""
        return self._above

    @property
    def pem(self) -> bytes:
        """Its own certificate."""
        return self.certificate.public_bytes(Encoding.PEM)

    def write(self, path: Path) -> Path:
        """Write its certificate to a PEM file."""
        path.write_bytes(self.pem)
        return path

    def issue(
        self,
        common: str = "localhost",
        names: Sequence[str] = LOOPBACK_NAMES,
        *,
        organization: str = "",
        begins: timedelta = -DAY,
        ends: timedelta = DAY,
    ) -> Issued:
        """Issue a certificate for host names; `begins` and `ends` are from now on."""
        key = ec.generate_private_key(ec.SECP256R1())
        own = self.sign(_name(common, organization), key, names, begins=begins, ends=ends)
        return Issued(key, (own, *self._above))

    def sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        names: Sequence[str],
        *,
        is_authority: bool = False,
        begins: timedelta = -DAY,
        ends: timedelta = DAY,
    ) -> x509.Certificate:
        """Sign a certificate of a key."""
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self._name, subject, key.public_key(), x509.random_serial_number()
        )
        builder = builder.not_valid_before(now + begins).not_valid_after(now + ends)
        constraint = x509.BasicConstraints(ca=is_authority, path_length=None)
        builder = builder.add_extension(constraint, critical=True)
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        for extension in (own, above):
            builder = builder.add_extension(extension, critical=False)
        if is_authority:
            usage = x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            )
            builder = builder.add_extension(usage, critical=True)
        if names:
            alternatives = x509.SubjectAlternativeName(map(_alternative, names))
            builder = builder.add_extension(alternatives, critical=False)
        return builder.sign(self._key, SHA256())
