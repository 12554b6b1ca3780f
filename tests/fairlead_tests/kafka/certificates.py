# pyright: basic
"""A certificate authority for tests, with certificates for 127.0.0.1 as PEM files."""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID


class Authority:
    """A self-signed authority; its PEM certificate is `path`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = self._signed(self._name, self._key, is_authority=True)
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def sign(self, name: str) -> Path:
        """Return a file with a private key and its certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed(_named(name), key, is_authority=False)
        path = self._folder / f"{name}.pem"
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.touch(0o600)
        path.write_bytes(private + signed.public_bytes(Encoding.PEM))
        return path

    def truststore(self, password: str) -> Path:
        """Return a store in PKCS12 with the authority's certificate."""
        trusted = [pkcs12.PKCS12Certificate(self._certificate, b"authority")]
        locked = BestAvailableEncryption(password.encode())
        path = self.path.with_suffix(".p12")
        path.write_bytes(pkcs12.serialize_java_truststore(trusted, locked))
        return path

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        host = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=7))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        )
        return made.sign(self._key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
