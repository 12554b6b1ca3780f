"""Stand-ins for secrets, with which configs are examined for callers who may not change them.

An answer about a config depends on the secrets in it: a value that has one is not shown, and one
that is the same is no change. A caller who may only look could so find out what a secret is, with
one request for many guesses. Their configs are examined with other secrets of the same form.
"""

import os
import secrets

from ....config.secrets import Vault, is_sealed, logins_in, passwords_in


class StandInVault(Vault):
    """Opens no secret: each has a stand-in, and nothing that is sealed is equal to one."""

    def __init__(self, vault: Vault) -> None:
        """Stand in for the secrets of a vault."""
        super().__init__(os.urandom(32))
        self._vault = vault
        self._stand_ins: dict[str, str] = {}
        """By the sealed value."""

    def seal(self, connector: str, value: str) -> str:
        """Return the sealed form of a value; that of a stand-in is the secret's own."""
        own = (sealed for sealed, stand_in in self._stand_ins.items() if stand_in == value)
        return next(own, "") or super().seal(connector, value)

    def unseal(self, connector: str, value: str) -> str:
        """Return the stand-in of a sealed value; other values are returned as they are."""
        if not is_sealed(value):
            return value
        if value not in self._stand_ins:
            self._stand_ins[value] = _stand_in_for(self._vault.unseal(connector, value))
        return self._stand_ins[value]


def _stand_in_for(secret: str) -> str:
    """Return another secret; of a URL, or a login of Java, only the password differs."""
    parts = sorted(passwords_in(secret) | logins_in(secret), key=len, reverse=True)
    for part in parts or [secret]:
        secret = secret.replace(part, secrets.token_hex(16))
    return secret
