"""Secret config values: sealed before they are written down, opened where they are used.

Logs are for ever, so a secret value enters one only as `${sealed:...}`: AES-SIV under a key that
is derived from the cluster's, bound to the connector's name. The seal is deterministic: the same
value of the same connector always looks the same. So a config that is put a second time changes
nothing and restarts nothing; a reader of the log learns at most that a secret did not change.

A reference is no secret but says where one is: it is kept as written, and resolved where it is
used. `${env:NAME}` is an environment variable of the worker, `${file:PATH:KEY}` a key of a
properties file that the worker can read. References may stand anywhere in a value, several too.
"""

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import javaproperties
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from ..pipeline.spi.config import HIDDEN
from .redaction import LONGEST, Redaction

_REFERENCE = re.compile(r"\$\{(?P<kind>env|file):(?P<place>[^{}]*)\}")


class ReferenceBroken(Exception):  # noqa: N818  # says what it is about
    """What a reference leads to is not there; the text names the place, and what to do."""


def is_reference(value: str) -> bool:
    """Tell whether a value is one reference and nothing else."""
    return _REFERENCE.fullmatch(value) is not None


def resolve(config: Mapping[str, str], found: dict[str, str] | None = None) -> dict[str, str]:
    """Return a config with what its references lead to; raises `ReferenceBroken`.

    What was put in is not looked through again. `found` takes each value that was put in, with
    its reference.
    """
    noted = {} if found is None else found

    def put_in(key: str, reference: "re.Match[str]") -> str:
        value = _look_up(key, reference)
        noted[value] = reference[0]
        return value

    return {key: _REFERENCE.sub(partial(put_in, key), config[key]) for key in config}


def _look_up(key: str, reference: "re.Match[str]") -> str:
    place = reference["place"]
    try:
        return os.environ[place] if reference["kind"] == "env" else _in_file(place)
    except KeyError:
        raise ReferenceBroken(
            f"{key}: {reference[0]} leads to nothing: there is no such"
            f" {'variable' if reference['kind'] == 'env' else 'key in the file'} at this worker"
        ) from None
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no sound properties file"
        raise ReferenceBroken(f"{key}: {reference[0]} cannot be read: {told}") from None


def _in_file(place: str) -> str:
    path, _, key = place.rpartition(":")
    with Path(path).open("rb") as file:
        found: dict[str, str] = javaproperties.load(file)  # pyright: ignore[reportUnknownMemberType]
    return found[key]


PREFIX: Final = "${sealed:"
_SUFFIX: Final = "}"
_PURPOSE: Final = b"fairlead seal 1"
_TELLING = re.compile(
    r"passw|passphrase|\bpwd|secret|token|credential|authoriz|bearer|cookie|\bauth\b|\bsas\b"
    r"|(api|access|private|account|encryption|shared)[._-]?key",
    re.IGNORECASE,
)
_USER_INFO = re.compile(
    r"://[^\s:/?#@]*:([^\s/?#]+)@"  # scheme://user:password@host
    r"|^jdbc:oracle:\w+:[^\s/]*/([^\s@]+)@"  # jdbc:oracle:thin:user/password@host
)
_IS_PLACE = re.compile(
    r"jdbc:|\S+://|(host|hostaddr|dbname|user|service|server)\s*=", re.IGNORECASE
)
_PARAMETER = re.compile(r"(?:^|[?&;,\s])([\w.-]+)\s*=\s*([^&;,#\s]+)")


class CannotUnseal(Exception):  # noqa: N818  # says what it is about
    """A sealed value is not of this cluster and connector, or was altered."""


def is_sealed(value: str) -> bool:
    """Tell whether a value is the sealed form of another."""
    return value.startswith(PREFIX)


def sounds_secret(key: str) -> bool:
    """Tell whether a key that nobody defined had better be treated as a secret one.

    It is for keys that are passed on as they are: `source.option.password`.
    """
    return _TELLING.search(key) is not None


def passwords_in(value: str) -> frozenset[str]:
    """Return the passwords inside a URL or a connection string, but for those it refers to."""
    if not _IS_PLACE.match(value.strip()):
        return frozenset()
    found = {part for pair in _USER_INFO.findall(value) for part in pair}
    found |= {told for name, told in _PARAMETER.findall(value) if sounds_secret(name)}
    return frozenset(part for part in found if part and not is_reference(part))


def shown(config: Mapping[str, str]) -> dict[str, str]:
    """Return a config as anybody may see it: without what is sealed in it, or should have been."""
    return {
        key: HIDDEN if is_sealed(value) or passwords_in(value) else value
        for key, value in config.items()
    }


class Opened(NamedTuple):
    """A config as it is run; `secrets` holds each value that was put in, and what stood there."""

    config: dict[str, str]
    secrets: Mapping[str, str]


class Vault:
    """Seals and opens values with a cluster's key, 32 random bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(blake2b(digest_size=64, key=key, person=_PURPOSE).digest())

    def seal(self, connector: str, value: str) -> str:
        """Return the sealed form; what is empty, or only refers to its secret, stays as it is."""
        if not value or is_reference(value):
            return value
        sealed = self._cipher.encrypt(value.encode(), [connector.encode()])
        return PREFIX + urlsafe_b64encode(sealed).decode() + _SUFFIX

    def unseal(self, connector: str, value: str) -> str:
        """Return what a sealed value stands for, and any other as it is; raises `CannotUnseal`."""
        if not is_sealed(value):
            return value
        try:
            sealed = urlsafe_b64decode(value.removeprefix(PREFIX).removesuffix(_SUFFIX))
            return self._cipher.decrypt(sealed, [connector.encode()]).decode()
        except (InvalidTag, ValueError):
            raise CannotUnseal(
                f"a secret of connector {connector} cannot be opened: it was sealed with another"
                " cluster's key, or for another connector, or was altered; put the connector's"
                " config again, with the secret in it"
            ) from None

    def seal_keys(
        self, connector: str, config: Mapping[str, str], keys: Collection[str]
    ) -> dict[str, str]:
        """Return a config with the values of these keys sealed."""
        return {
            key: self.seal(connector, value) if key in keys else value
            for key, value in config.items()
        }

    def reveal(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        """Return a config as a worker runs it: unsealed, and with its references resolved.

        Raises `CannotUnseal`, `ReferenceBroken`.
        """
        return self.open(connector, config).config

    def open(self, connector: str, config: Mapping[str, str]) -> Opened:
        """Return a config as a worker runs it, and what must not be told of it.

        Raises `CannotUnseal`, also for a value that is too long to be hidden, `ReferenceBroken`.
        """
        unsealed = {key: self.unseal(connector, value) for key, value in config.items()}
        secrets: dict[str, str] = {}
        resolved = resolve(unsealed, secrets)
        sealed = [resolved[key] for key in config if is_sealed(config[key])]
        inside = {part for value in sealed for part in passwords_in(value)}
        secrets |= dict.fromkeys((*sealed, *inside, *map(unquote, inside)), HIDDEN)
        secrets.pop("", None)
        _refuse_long(connector, secrets)
        return Opened(resolved, secrets)

    def conceal(
        self, connector: str, task_config: Mapping[str, str], stored: Mapping[str, str]
    ) -> dict[str, str]:
        """Return a task config fit for the log, its connector having seen the revealed config.

        What came through unchanged is written as in the connector's stored config, and any
        other value in which a secret turns up, however spelled, is sealed. Raises what `reveal`
        raises.
        """
        revealed, secrets = self.open(connector, stored)
        known = Redaction()
        known.learn(secrets)

        def concealed(key: str, value: str) -> str:
            if revealed.get(key) == value:
                return stored[key]
            is_secret = value in secrets or known.hide(value) != value
            return self.seal(connector, value) if is_secret else value

        return {key: concealed(key, value) for key, value in task_config.items()}


def _refuse_long(connector: str, secrets: Mapping[str, str]) -> None:
    """Raise `CannotUnseal` for a value that could not be kept out of texts in good time."""
    for secret, shown in secrets.items():
        if len(secret) > LONGEST:
            raise CannotUnseal(
                f"a secret of connector {connector} ({shown}) has {len(secret)} letters, and at"
                f" most {LONGEST} are taken: give the path of a file instead"
            )
