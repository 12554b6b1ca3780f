"""Secret config values: encrypted ("sealed") in the log, decrypted on the worker that uses them.

The event log is never deleted, so a secret is logged only as `${sealed:...}`: AES-SIV with a key
derived from the cluster's, and the connector's name as associated data. The encryption is
deterministic: the same value of the same connector always has the same sealed form. So putting the
same config again changes and restarts nothing, and a reader of the log learns only whether a secret
has changed.
References (`references`) are logged as written.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import unquote

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from ...actors.settings import HIDDEN, sounds_secret
from .references.redaction import LONGEST, Redaction
from .references.resolving import is_reference, resolve

PREFIX: Final = "${sealed:"
_SUFFIX: Final = "}"
_PURPOSE: Final = b"fairlead seal 1"
_USER_INFO = re.compile(
    r"://[^\s:/?#@]*:([^\s/?#]+)@"  # scheme://user:password@host
    r"|^jdbc:oracle:\w+:[^\s/]*/([^\s@]+)@"  # jdbc:oracle:thin:user/password@host
)
_IS_PLACE = re.compile(
    r"jdbc:|\S+://|(host|hostaddr|dbname|user|service|server)\s*=", re.IGNORECASE
)
_PARAMETER = re.compile(r"(?:^|[?&;,\s])([\w.-]+)\s*=\s*([^&;,#\s]+)")
_LOGIN = re.compile(r"""\bpassword\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class CannotUnseal(Exception):  # noqa: N818  # says what it is about
    """A sealed value was sealed for another cluster or connector, or was altered."""


def is_sealed(value: str) -> bool:
    """Return whether a value is in its sealed form."""
    return value.startswith(PREFIX)


def passwords_in(value: str) -> frozenset[str]:
    """Return the passwords in a URL or a connection string, without those that are references."""
    if not _IS_PLACE.match(value.strip()):
        return frozenset()
    found = {part for pair in _USER_INFO.findall(value) for part in pair}
    found |= {text for name, text in _PARAMETER.findall(value) if sounds_secret(name)}
    return frozenset(part for part in found if part and not is_reference(part))


def logins_in(value: str) -> frozenset[str]:
    """Return the passwords in logins of Java's clients."""
    return frozenset(part for pair in _LOGIN.findall(value) for part in pair if part)


def mask(text: str, secrets: Collection[str]) -> str:
    """Replace secrets in a text, those first that have others in them: no part of one remains."""
    return mask_as(text, dict.fromkeys(secrets, HIDDEN))


def mask_as(text: str, shown: Mapping[str, str]) -> str:
    """Replace secrets in a text as `mask` does, each by what to show instead."""
    for secret in sorted(shown, key=len, reverse=True):
        text = text.replace(secret, shown[secret])
    return text


def hide_secrets(config: Mapping[str, str]) -> dict[str, str]:
    """Return a config with its secrets hidden: sealed values, and values with passwords in them."""
    return {
        key: HIDDEN if is_sealed(value) or passwords_in(value) else value
        for key, value in config.items()
    }


class OpenedConfig(NamedTuple):
    """A config with plain values; `secrets` has each secret value and its replacement in texts."""

    config: dict[str, str]
    secrets: Mapping[str, str]


class Vault:
    """Encrypts and decrypts values with a cluster's key of 32 random bytes."""

    def __init__(self, key: bytes, own_folder: str = "") -> None:
        """`own_folder` is the node's, in which references read nothing."""
        self._own_folder = own_folder
        self._cipher = AESSIV(blake2b(digest_size=64, key=key, person=_PURPOSE).digest())

    def seal(self, connector: str, value: str) -> str:
        """Return the sealed form of a value; an empty value or a reference is returned as it is."""
        if not value or is_reference(value):
            return value
        sealed = self._cipher.encrypt(value.encode(), [connector.encode()])
        return PREFIX + urlsafe_b64encode(sealed).decode() + _SUFFIX

    def unseal(self, connector: str, value: str) -> str:
        """Decrypt a sealed value; other values are returned as they are. Raises `CannotUnseal`."""
        if not is_sealed(value):
            return value
        try:
            sealed = urlsafe_b64decode(value.removeprefix(PREFIX).removesuffix(_SUFFIX))
            return self._cipher.decrypt(sealed, [connector.encode()]).decode()
        except (InvalidTag, ValueError):
            raise CannotUnseal(
                f"a secret of connector {connector} cannot be decrypted: it was sealed with another"
                " cluster's key, or for another connector, or was altered; put the connector's"
                " config again, with the secret in it"
            ) from None

    def seal_keys(
        self, connector: str, config: Mapping[str, str], keys: Collection[str]
    ) -> dict[str, str]:
        """Seal the values of these keys in a config."""
        return {
            key: self.seal(connector, value) if key in keys else value
            for key, value in config.items()
        }

    def open(
        self, connector: str, config: Mapping[str, str], left: Collection[str] = ()
    ) -> OpenedConfig:
        """Return a config with plain values, and the secrets that must be redacted.

        References that begin with one of `left` are left as they are. Raises `CannotUnseal` (also
        for a secret that is too long to redact), `ReferenceBroken`.
        """
        unsealed = {key: self.unseal(connector, value) for key, value in config.items()}
        secrets: dict[str, str] = {}
        resolved = resolve(unsealed, secrets, self._own_folder, left)
        sealed = [resolved[key] for key in config if is_sealed(config[key])]
        inside = {part for value in sealed for part in passwords_in(value)}
        secrets |= dict.fromkeys((*sealed, *inside, *map(unquote, inside)), HIDDEN)
        secrets.pop("", None)
        _refuse_long(connector, secrets)
        return OpenedConfig(resolved, secrets)

    def conceal(
        self,
        connector: str,
        task_config: Mapping[str, str],
        stored: Mapping[str, str],
        left: Collection[str] = (),
        further: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, str]:
        """Seal the secrets of a task config, which a connector made from its plain config.

        A value that is the same as in the connector's config is replaced by the stored one; any
        other value that contains a secret, in any spelling, is sealed. `further` has secrets that
        are not in the config, with what to show instead; `left` and errors are as of `open`.
        """
        revealed, secrets = self.open(connector, stored, left)
        secrets = {**further, **secrets}
        redaction = Redaction()
        redaction.learn(secrets)

        def concealed(key: str, value: str) -> str:
            if revealed.get(key) == value:
                return stored[key]
            is_secret = value in secrets or redaction.hide(value) != value
            return self.seal(connector, value) if is_secret else value

        return {key: concealed(key, value) for key, value in task_config.items()}


def _refuse_long(connector: str, secrets: Mapping[str, str]) -> None:
    """Raise `CannotUnseal` for secrets that are too long, alone or together, to be redacted."""
    total = 0
    for secret, shown in secrets.items():
        total += len(secret)
        if total > LONGEST:
            told = f"a secret of connector {connector} ({shown}) has {len(secret)} characters"
            if len(secret) <= LONGEST:
                told = f"the secrets of connector {connector} have more than {LONGEST} characters"
            raise CannotUnseal(
                f"{told}, and at most {LONGEST} are allowed: use the path of a file instead"
            )
