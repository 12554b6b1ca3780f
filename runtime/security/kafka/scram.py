"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): stored keys, and both sides of an exchange.

The client sends its name and a nonce. The server answers with the nonce extended by its own, a salt
and a number of iterations. From these and the password the client derives its key, and proves that
it has it by a signature of all messages; the server proves the same of its own key. The password
itself is never sent, and the server has only keys from which it cannot be derived.

A server that does not know a name goes on with keys that nobody has, whose salt depends on the name
alone: so the exchange fails where one with a wrong password does, with the same bytes on the way.
As in Kafka, passwords are UTF-8 without further preparation, and there is no channel binding.
"""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Final, NamedTuple

DIGESTS: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash functions of the mechanisms."""
ITERATIONS: Final = 8_192
"""The iterations of new keys: twice the least that RFC 7677 and Kafka allow."""
LEAST_ITERATIONS: Final = 4_096
MOST_ITERATIONS: Final = 1_000_000
"""A server that asks for more would only keep its client busy."""
NONCE_BYTES: Final = 24
SALT_BYTES: Final = 16
LONGEST_MESSAGE: Final = 4_096

_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_NAME: Final = r"(?:[^\x00,=]|=2C|=3D)+"
_BASE64: Final = r"[A-Za-z0-9+/]+={0,2}"
_FIRST: Final = re.compile(
    rf"(?P<gs2>[ny],(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<more>(?:,\w+=[^\x00,]+)*))"
)
_SERVER_FIRST: Final = re.compile(rf"r=({_PRINTABLE}),s=({_BASE64}),i=([1-9][0-9]{{0,8}})(?:,.*)?")
_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE})(?:,[A-Za-z]=[^\x00,]+)*)"
    rf",p=(?P<proof>{_BASE64})"
)


class ScramError(Exception):
    """An exchange that has failed; the text never has a name or a part of a password."""


class ScramKeys(NamedTuple):
    """The keys of one user for one mechanism."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


class ClientFirst(NamedTuple):
    """The first message of a client."""

    name: str
    nonce: str
    header: str
    """The GS2 header, which the last message repeats."""
    bare: str
    """The rest, which is signed."""
    extensions: str


def salt_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, from which all keys are derived; it takes milliseconds."""
    return hashlib.pbkdf2_hmac(DIGESTS[mechanism], password.encode(), salt, iterations)


def derive_keys(
    mechanism: str, password: str, salt: bytes = b"", iterations: int = ITERATIONS
) -> ScramKeys:
    """Return the keys of a password; without a salt with a new random one."""
    salt = salt or secrets.token_bytes(SALT_BYTES)
    salted = salt_password(mechanism, password, salt, iterations)
    stored = hashlib.new(DIGESTS[mechanism], _sign(mechanism, salted, "Client Key")).digest()
    return ScramKeys(iterations, salt, stored, _sign(mechanism, salted, "Server Key"))


def read_client_first(message: bytes) -> ClientFirst:
    """Parse the first message of a client; raises `ScramError`."""
    found = _match(_FIRST, message)
    name = _unescape(found["name"])
    if found["authzid"] is not None and _unescape(found["authzid"]) != name:
        raise ScramError("one user may not act as another")
    return ClientFirst(name, found["nonce"], found["gs2"], found["bare"], found["more"])


class ScramServer:
    """The server's side of one exchange."""

    def __init__(self, mechanism: str, first: ClientFirst, keys: ScramKeys) -> None:
        """Answer this first message with the keys of its user, or with keys that nobody has."""
        self._mechanism, self._first, self._keys = mechanism, first, keys
        self._nonce = first.nonce + b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        salt = b64encode(keys.salt).decode()
        self.challenge = f"r={self._nonce},s={salt},i={keys.iterations}".encode()
        """The first message of the server."""

    def finish(self, message: bytes) -> bytes:
        """Verify the last message of the client, return that of the server; raises `ScramError`."""
        parts = _match(_FINAL, message)
        binding, nonce = _decode(parts["binding"]), parts["nonce"]
        is_same = hmac.compare_digest(nonce.encode(), self._nonce.encode())
        if not is_same or binding != self._first.header.encode():
            raise ScramError("it belongs to another exchange")
        signed = ",".join((self._first.bare, self.challenge.decode(), parts["bare"]))
        proof = _decode(parts["proof"])
        signature = _sign(self._mechanism, self._keys.stored_key, signed)
        if len(proof) != len(signature):
            raise ScramError("its proof is of another mechanism")
        key = _xor(proof, signature)
        digest = hashlib.new(DIGESTS[self._mechanism], key).digest()
        if not hmac.compare_digest(digest, self._keys.stored_key):
            raise ScramError("the password is wrong, or there is no such user")
        return b"v=" + b64encode(_sign(self._mechanism, self._keys.server_key, signed))


class ScramClient:
    """The client's side of one exchange."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self._mechanism, self._password = mechanism, password
        self._nonce = b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self.first = f"n,,{self._bare}".encode()
        """The first message of the client."""
        self._expected = b""
        """The last message of a server that has the keys."""

    def prove(self, challenge: bytes) -> bytes:
        """Return the last message of the client; raises `ScramError`."""
        found = _match(_SERVER_FIRST, challenge)
        nonce, salt, iterations = found[1], _decode(found[2]), int(found[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError("the server's answer belongs to another exchange")
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ScramError(f"the server asks for {iterations} iterations")
        salted = salt_password(self._mechanism, self._password, salt, iterations)
        bare = f"c=biws,r={nonce}"  # biws: n,,
        signed = ",".join((self._bare, challenge.decode(), bare))
        key = _sign(self._mechanism, salted, "Client Key")
        stored = hashlib.new(DIGESTS[self._mechanism], key).digest()
        proof = _xor(key, _sign(self._mechanism, stored, signed))
        server_key = _sign(self._mechanism, salted, "Server Key")
        self._expected = b"v=" + b64encode(_sign(self._mechanism, server_key, signed))
        return f"{bare},p={b64encode(proof).decode()}".encode()

    def verify(self, answer: bytes) -> None:
        """Raise `ScramError` unless the server has proved that it has the user's keys."""
        signature = answer.partition(b",")[0]
        if not self._expected or not hmac.compare_digest(signature, self._expected):
            raise ScramError("the server does not have the user's keys")


def _match(pattern: re.Pattern[str], message: bytes) -> re.Match[str]:
    try:
        text = message.decode() if len(message) <= LONGEST_MESSAGE else ""
    except UnicodeDecodeError:
        text = ""
    found = pattern.fullmatch(text)
    if found is None:
        raise ScramError("the message is malformed, or needs what is not supported")
    return found


def _unescape(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise ScramError("the message is malformed: it has invalid base64") from None


def _sign(mechanism: str, key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), DIGESTS[mechanism])


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
