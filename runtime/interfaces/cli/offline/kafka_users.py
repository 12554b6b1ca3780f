"""The command `kafka-user`: it writes the file of users of the Kafka listener.

A running listener reads the file again within a second.
"""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from getpass import getpass
from pathlib import Path
from typing import Annotated, Final

from ....security.followed_files import FileRefused, read_owned
from ....security.kafka.scram import ScramKeys
from ....security.kafka.users import (
    changing_users,
    check_name,
    keys_of_password,
    load_users,
)
from ..adapters.parameters import Argument, Option
from ..output.printing import Failed, Misused, Table, say, show
from ..requests.options import LocalOptions, LocalReadOptions, with_options

Name = Annotated[str, Argument(metavar="NAME", help="The user's name.")]


@with_options(LocalOptions)
def add_user(
    options: LocalOptions,
    name: Name,
    password_file: Annotated[
        Path | None,
        Option(
            "--password-file",
            metavar="FILE",
            help="Read the password from this file, not from the terminal or standard input.",
        ),
    ] = None,
) -> None:
    """Add a user of the Kafka listener, or set the user's password anew.

    Only keys are stored, from which the password cannot be derived.
    """
    try:
        check_name(name)
        keys = keys_of_password(_read_password(password_file))
    except (FileRefused, ValueError) as error:
        raise Misused(f"{error}; nothing was changed") from None
    with _changing(options.load_config().kafka_users_path) as users:
        users[name] = keys
    say(f"{name} may log in with this password")


@with_options(LocalReadOptions)
def list_users(options: LocalReadOptions) -> None:
    """List the users of the Kafka listener."""
    try:
        users = load_users(options.load_config().kafka_users_path)
    except FileRefused as refused:
        raise Failed(str(refused)) from None
    content = [{"name": name, "mechanisms": sorted(users[name])} for name in sorted(users)]
    rows = [(name, ", ".join(sorted(users[name]))) for name in sorted(users)]
    empty = "no users of the Kafka listener: add one with `fairlead kafka-user add NAME`"
    show(options.output, content, [Table(("NAME", "MECHANISMS"), rows, empty)])


@with_options(LocalOptions)
def remove_user(options: LocalOptions, name: Name) -> None:
    """Remove a user of the Kafka listener; connections that are open stay open."""
    path = options.load_config().kafka_users_path
    with _changing(path) as users:
        if users.pop(name, None) is None:
            raise Failed(f"there is no user {name} in {path}; nothing was changed")
    say(f"{name} may not log in any more")


@contextmanager
def _changing(path: Path) -> Generator[dict[str, Mapping[str, ScramKeys]]]:
    """Change the users of a file in the context; raises `Failed`."""
    try:
        with changing_users(path) as users:
            yield users
    except FileRefused as refused:
        raise Failed(f"{refused}; nothing was changed") from None
    except OSError as error:
        raise Failed(f"{path} cannot be written ({error.strerror}); nothing was changed") from None


def _read_password(path: Path | None) -> str:
    """Return the password: from a file, from the terminal twice, or one line of the input.

    Raises `FileRefused`, `ValueError`.
    """
    if path is not None:
        return read_owned(path, is_secret=True).decode().rstrip("\n")
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass("Password: ")
    if getpass("Again: ") != password:
        raise ValueError("the passwords differ")
    return password


VERBS: Final = {"add": add_user, "list": list_users, "remove": remove_user}
"""The verbs of `fairlead kafka-user`."""
