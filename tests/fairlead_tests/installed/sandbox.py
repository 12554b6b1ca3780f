"""Runs a program under what a unit of systemd says of its process: calls, limits and umask.

`python sandbox.py UNIT PROGRAM ARGUMENT...` applies what needs no mount namespace: the lines of
SystemCallFilter= by libseccomp, NoNewPrivileges=, LimitNOFILE= and UMask=. Groups of calls such as
`@system-service` are what systemd-analyze says they are.
"""

import configparser
import ctypes
import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS = 38
LIBRARY = "libseccomp.so.2"


class ManyValues(dict[str, Any]):
    """Keeps all values of a key that a unit has several times."""

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and key in self:
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def read_unit(unit: Path) -> dict[str, list[str]]:
    """Return the values of the keys in the part [Service] of a unit."""
    parser = configparser.RawConfigParser(dict_type=ManyValues, strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return {name: value.splitlines() for name, value in parser["Service"].items()}


def allowed_calls(lines: list[str]) -> set[str]:
    """Return the system calls that SystemCallFilter= lines allow together."""
    allowed: set[str] = set()
    for line in lines:
        names = {call for word in line.removeprefix("~").split() for call in expand(word)}
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed | {*expand("@default")}


def expand(word: str) -> Iterator[str]:
    """Yield the system calls of a group, and of the groups in it; or the call itself."""
    if not word.startswith("@"):
        yield word
        return
    command = ["systemd-analyze", "syscall-filter", word]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in shown.splitlines()[1:]:
        if (name := line.strip()) and not name.startswith("#"):
            yield from expand(name)


def filter_calls(names: set[str]) -> None:
    """Refuse all other system calls, with EPERM, to this process and its children."""
    library = ctypes.CDLL(LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_ERRNO | errno.EPERM))
    for name in names:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            library.seccomp_rule_add(context, ctypes.c_uint32(_ALLOW), ctypes.c_int(number), 0)
    if library.seccomp_load(context):
        raise OSError("the filter could not be loaded")


def main(unit: Path, program: list[str]) -> None:
    """Apply the unit, and become the program."""
    service = read_unit(unit)
    calls = allowed_calls(service["SystemCallFilter"])
    files = int(service["LimitNOFILE"][0])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = files if most == resource.RLIM_INFINITY else min(most, files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, files), files))
    os.umask(int(service["UMask"][0], 8))
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    filter_calls(calls)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
