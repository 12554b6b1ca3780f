"""The file of the users of Kafka's listener: SCRAM keys by name and mechanism, never passwords.

It is JSON: `{"users": {NAME: {MECHANISM: {"iterations", "salt", "stored_key", "server_key"}}}}`,
with bytes in base64. The same keys verify PLAIN.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ...cluster.node_files import write_private
from ..followed_files import locked, parse_owned
from .scram import DIGESTS, LEAST_ITERATIONS, MOST_ITERATIONS, ScramKeys, derive_keys

LONGEST_NAME: Final = 255
SHORTEST_PASSWORD: Final = 8

Users = Mapping[str, Mapping[str, ScramKeys]]
"""The keys by name and mechanism."""
NO_USERS: Final[Users] = {}


def check_name(name: str) -> str:
    """Return a user's name; raises `ValueError`."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise ValueError(
            f"a name has 1 to {LONGEST_NAME} printable characters, and no spaces around them"
        )
    return name


def parse_users(text: str) -> Users:
    """Parse the content of a file; raises `ValueError`."""
    try:
        users = json.loads(text)["users"]
        return {
            check_name(name): {
                mechanism: _read_keys(mechanism, keys) for mechanism, keys in by_mechanism.items()
            }
            for name, by_mechanism in users.items()
        }
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no file of users ({type(error).__name__})") from None


def format_users(users: Users) -> str:
    """Return the content of a file."""
    entries = {
        name: {mechanism: _write_keys(keys) for mechanism, keys in by_mechanism.items()}
        for name, by_mechanism in sorted(users.items())
    }
    return json.dumps({"users": entries}, indent=2, ensure_ascii=False) + "\n"


def load_users(path: Path) -> dict[str, Mapping[str, ScramKeys]]:
    """Return the users of a file, none if there is no file; raises `FileRefused`."""
    return dict(parse_owned(path, parse_users, is_secret=True, missing=NO_USERS))


@contextmanager
def changing_users(path: Path) -> Generator[dict[str, Mapping[str, ScramKeys]]]:
    """Lock the file for the context; the users in the dictionary replace it at its end.

    An exception in the context leaves it as it is. Raises `FileRefused`, `OSError`.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path):
        users = load_users(path)
        yield users
        save_users(path, users)


def save_users(path: Path, users: Users) -> None:
    """Replace the file by one that only its owner may read; raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, format_users(users).encode(), is_durable=True)


def keys_of_password(password: str) -> Mapping[str, ScramKeys]:
    """Return new keys for all mechanisms; raises `ValueError` for a password that is too short."""
    if len(password) < SHORTEST_PASSWORD:
        raise ValueError(f"a password has at least {SHORTEST_PASSWORD} characters")
    return {mechanism: derive_keys(mechanism, password) for mechanism in DIGESTS}


def _read_keys(mechanism: str, content: Mapping[str, Any]) -> ScramKeys:
    if mechanism not in DIGESTS:
        raise ValueError(f"{mechanism!r} is none of {', '.join(DIGESTS)}")
    parts = (b64decode(content[name], validate=True) for name in ScramKeys._fields[1:])
    keys = ScramKeys(int(content["iterations"]), *parts)
    if not LEAST_ITERATIONS <= keys.iterations <= MOST_ITERATIONS or not keys.salt:
        raise ValueError(f"keys need {LEAST_ITERATIONS} iterations or more, and a salt")
    return keys


def _write_keys(keys: ScramKeys) -> dict[str, int | str]:
    texts = {name: b64encode(getattr(keys, name)).decode() for name in ScramKeys._fields[1:]}
    return {"iterations": keys.iterations, **texts}
