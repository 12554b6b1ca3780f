"""`up` says who else on the machine may do everything with a node that asks nobody who they are."""

import os
import pwd

import pytest

from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.other_users import list_other_users, warn_of_other_users


def user(name: str, uid: int, shell: str = "/bin/bash") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", shell))


def test_people_who_can_log_in_are_others_and_programs_are_not() -> None:
    users = [
        user("ben", 1_002),
        user("ann", 1_001, "/usr/bin/fish"),
        user("me", os.getuid()),
        user("root", 0),
        user("postgres", 101),
        user("nobody", 65_534),
        user("backup", 1_003, "/usr/sbin/nologin"),
    ]
    assert list_other_users(users) == ["ann", "ben"]


@pytest.mark.parametrize(
    ("overrides", "others", "beginning"),
    [
        ([], ["ann", "ben"], "warning: ann, ben can log in on this machine, and may do everything"),
        ([], [*"abcde"], "warning: a, b, c and 2 more can log in"),
        ([], [], ""),
        (["rest.authentication=token"], ["ann"], ""),
        (["listeners=unix:///tmp/fairlead.sock"], ["ann"], ""),
    ],
)
def test_one_line_names_them_unless_they_are_asked(
    overrides: list[str], others: list[str], beginning: str
) -> None:
    warning = warn_of_other_users(load_config(None, {}, overrides), others)
    assert (warning.startswith(beginning), bool(warning), "\n" in warning) == (
        True,
        bool(beginning),
        False,
    )
