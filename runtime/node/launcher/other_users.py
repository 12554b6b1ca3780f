"""Says who else may do everything with a node that asks nobody who they are."""

import os
import pwd
from collections.abc import Iterable
from typing import Final

from ...config.load import Config
from ...security.settings import Authentication

FIRST_PERSON, NOBODY = 1_000, 65_534
"""The ids of people's users, between those of programs and that of nobody."""
NO_SHELLS: Final = frozenset({"nologin", "false", "sync", ""})
FIRST: Final = 3
"""How many of them are named."""


def list_other_users(entries: Iterable[pwd.struct_passwd] | None = None) -> list[str]:
    """Return the names of people other than this process's user who can log in here."""
    return sorted(
        each.pw_name
        for each in (pwd.getpwall() if entries is None else entries)
        if FIRST_PERSON <= each.pw_uid < NOBODY
        and each.pw_uid != os.getuid()
        and each.pw_shell.rpartition("/")[2] not in NO_SHELLS
    )


def warn_of_other_users(config: Config, others: list[str]) -> str:
    """Return a line about the others who may do everything here; "" if there are none."""
    is_asked = Authentication.NONE not in config.access().authentication
    if is_asked or not others or all(each.is_unix for each in config.rest_listeners()):
        return ""
    more = len(others) - FIRST
    named = ", ".join(others[:FIRST]) + (f" and {more} more" if more > 0 else "")
    return (
        f"warning: {named} can log in on this machine, and may do everything with this node, which"
        " asks nobody who they are: set rest.authentication=token, or listen at a Unix socket alone"
        " (`fairlead docs access`)"
    )
