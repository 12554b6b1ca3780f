"""Slows those who guess passwords, and nobody else.

Passwords from one address are verified one after the other, so that many of them leave the threads
to other addresses. After some failures the next one waits, each time for longer. A user who was let
in from an address before has a turn and failures of its own there, and waits for a second at most:
another client of this user may have an old password.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from ...security.kafka.users import LONGEST_NAME
from ...security.throttling import MOST_KEPT, FailedLogins, network_of
from .mechanisms import AuthenticationFailed

LONGEST_OF_KNOWN: Final = 1.0
"""The longest pause of a user at an address from which it was let in, in seconds."""


class LoginThrottle:
    """The turns and the failures of all addresses, for all connections of a listener."""

    def __init__(self) -> None:
        self._failed = FailedLogins()
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """The lock of each address, or user at an address, while somebody has it or waits."""
        self._let_in = OrderedDict[str, None]()
        """Users with addresses from which they were let in, the last one at the end."""

    @asynccontextmanager
    async def attempt(self, address: str, user: str) -> AsyncGenerator[None]:
        """Wait for a turn; `AuthenticationFailed` in the context makes the next one wait."""
        network, user = network_of(address), user[:LONGEST_NAME]
        own = f"{network} {user}"
        is_known = own in self._let_in
        key = own if is_known else network
        async with self._turns.setdefault(key, asyncio.Lock()):
            await asyncio.sleep(self._pause(key, user, is_known=is_known))
            try:
                yield
            except AuthenticationFailed:
                self._failed.note(key, user)
                raise
        self._let_in[own] = None
        self._let_in.move_to_end(own)
        if len(self._let_in) > MOST_KEPT:
            self._let_in.popitem(last=False)

    def _pause(self, key: str, user: str, *, is_known: bool) -> float:
        """Return for how many seconds the next attempt waits."""
        seconds = self._failed.address_waits(key)
        if is_known:
            return min(seconds, LONGEST_OF_KNOWN)
        return max(seconds, self._failed.name_waits(user))
