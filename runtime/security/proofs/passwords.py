"""Passwords and tokens: how they are hashed, and checked without holding up the event loop.

A password is hashed by Argon2id, which takes 19 MiB and some time: on a few threads, of which no
address keeps more than its part busy, and beyond a bounded queue the caller is told to come again.
A pair of name and password that was right is remembered for minutes by a keyed digest, whose key
never leaves the process, and forgotten when the entries change. An unknown name costs the same time
as a known one.
"""

import asyncio
import hashlib
import hmac
import os
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from ..throttling import network_of
from .entries import AccessEntries, AccessEntry, EntryKind

TOKEN_PREFIX: Final = "fl_"  # noqa: S105  # by which scanners of repositories know one
TOKEN_BYTES: Final = 32
SHORTEST_PASSWORD: Final = 8
LONGEST_PASSWORD: Final = 1_024
"""In bytes: what is longer is no password that was set here."""
THREADS: Final = 2
MOST_WAITING: Final = 64
"""How many passwords wait for a thread; the callers of further ones are told to come again."""
MOST_OF_ADDRESS: Final = 4
"""How many of them one address may have."""
REMEMBERED_SECONDS: Final = 300.0
MOST_REMEMBERED: Final = 1_024


class TooManyChecksError(Exception):
    """Other passwords are being checked: this one was not."""


def hash_password(password: str) -> str:
    """Return the PHC string of a password, with a salt of its own."""
    kdf = Argon2id(salt=os.urandom(16), length=32, iterations=2, lanes=1, memory_cost=19 * 1_024)
    return kdf.derive_phc_encoded(password.encode())


def make_token() -> str:
    """Return a new token of 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def digest_token(token: str) -> str:
    """Hash a token as it is stored: hexadecimal SHA-256."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def find_token(entries: AccessEntries, token: str) -> AccessEntry | None:
    """Return the entry of a token; None if there is none."""
    digest = digest_token(token)
    entry = entries.by_token.get(digest)
    return entry if entry and hmac.compare_digest(entry.secret, digest) else None


class PasswordChecks:
    """Checks names with their passwords, for all requests of a process."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords")
        self._waiting: Counter[str] = Counter()
        """How many passwords of each address are being checked, or wait for it."""
        self._key = os.urandom(32)
        self._entries: AccessEntries | None = None
        """Those for which pairs are remembered."""
        self._remembered: OrderedDict[bytes, float] = OrderedDict()
        """Until when each right pair is remembered, by its digest; the oldest first."""
        self._nobody = hash_password(secrets.token_urlsafe())
        """What an unknown name is checked against."""

    def remembers(self, entries: AccessEntries, name: str, password: str) -> bool:
        """Return whether a pair was right just before, by the same entries."""
        if entries is not self._entries:
            self._entries = entries
            self._remembered.clear()
        until = self._remembered.get(self._digest(name, password))
        return until is not None and time.monotonic() < until

    async def check(self, entries: AccessEntries, name: str, password: str, address: str) -> bool:
        """Return whether a password is that of a user; raises `TooManyChecksError`."""
        entry = entries.find(EntryKind.USER, name)
        with self._taking_part(address):
            is_right = await asyncio.get_running_loop().run_in_executor(
                self._threads, _is_right, password, entry.secret if entry else self._nobody
            )
        if not is_right or entry is None:
            return False
        if entries is self._entries:
            self._remembered[self._digest(name, password)] = time.monotonic() + REMEMBERED_SECONDS
            if len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return True

    @contextmanager
    def _taking_part(self, address: str) -> Generator[None]:
        network = network_of(address)
        if self._waiting[network] >= MOST_OF_ADDRESS or self._waiting.total() >= MOST_WAITING:
            raise TooManyChecksError
        self._waiting[network] += 1
        try:
            yield
        finally:
            self._waiting[network] -= 1
            self._waiting += Counter()  # without those that are 0

    def _digest(self, name: str, password: str) -> bytes:
        pair = f"{len(name)} {name} {password}".encode(errors="surrogatepass")
        return hashlib.blake2b(pair, key=self._key).digest()


def _is_right(password: str, phc: str) -> bool:
    octets = password.encode(errors="surrogatepass")
    if len(octets) > LONGEST_PASSWORD:
        octets, phc = b"", phc.rpartition("$")[0] + "$" + "A" * 43  # as slow, and never right
    try:
        Argon2id.verify_phc_encoded(octets, phc)
    except (InvalidKey, ValueError):
        return False
    return True
