"""A temporary PostgreSQL server for the demo: in its own folder, on a free loopback port.

It ends with the demo. PostgreSQL refuses to run as root, so then another system user runs it.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ....actors.tether import die_with
from ...pipeline.installed import pip_install

if TYPE_CHECKING:
    import psycopg

_PATIENCE_S: Final = 30.0
_RUN_BY: Final = ("postgres", "nobody")
_PLACES: Final = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt")
_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_connections": "60",
    "shared_buffers": "64MB",
}
USER: Final = "demo"


class DatabaseError(Exception):
    """The demo's server cannot be started; the message says why."""


def missing_parts() -> Sequence[str]:
    """Return the missing requirements of the demo, each with the command that installs it."""
    missing: list[str] = []
    if find_spec("psycopg") is None or find_spec("adbc_driver_postgresql") is None:
        missing.append(f"the extra for PostgreSQL: {sys.executable} -m {pip_install('postgres')}")
    if _bin() is None:
        missing.append(
            "a PostgreSQL server of 14 or later (initdb): apt-get install postgresql, or put the "
            "folder of its programs on PATH"
        )
    elif os.geteuid() == 0 and _user() is None:
        missing.append(f"a user that may run it, since root may not: {' or '.join(_RUN_BY)}")
    return missing


class DemoServer:
    """A temporary server; `stop` removes it with its data."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-demo-postgres-"))
        self._process: subprocess.Popen[Any] | None = None
        self.password = secrets.token_hex(12)
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]

    @property
    def url(self) -> str:
        """The database's URL, without the password."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Create the cluster, start it and wait until it answers; raises `DatabaseError`."""
        where = _bin()
        if where is None:
            raise DatabaseError("there is no initdb")
        password = self._folder / "password"
        password.write_text(self.password)
        if user := _user():
            for each in (self._folder, password):
                os.chown(each, user.pw_uid, user.pw_gid)
        data = str(self._folder / "data")
        made = ["--pgdata", data, "--username", USER, "--pwfile", str(password), "--no-sync"]
        self._run([str(where / "initdb"), *made, "--auth", "scram-sha-256", "--encoding", "UTF8"])
        options = [each for name, value in _SETTINGS.items() for each in ("-c", f"{name}={value}")]
        command = [str(where / "postgres"), "-D", data, "-p", str(self.port), *options]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - no shell
                command,
                stdout=log,
                stderr=log,
                preexec_fn=partial(die_with, os.getpid(), signal.SIGQUIT),  # noqa: PLW1509 - no thread runs yet
                **self._as_user(),
            )
        self._wait()

    def connect(self) -> "psycopg.Connection[Any]":
        """Return a connection with autocommit."""
        import psycopg  # noqa: PLC0415  # an extra

        return psycopg.connect(self.url, password=self.password, autocommit=True)

    def stop(self) -> None:
        """Stop it, and remove its data."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self) -> None:
        import psycopg  # noqa: PLC0415  # an extra

        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError as error:
                is_gone = self._process is None or self._process.poll() is not None
                if is_gone or time.monotonic() > deadline:
                    told = (self._folder / "log").read_text(errors="replace")
                    raise DatabaseError(f"PostgreSQL did not start: {error}\n{told}") from None
                time.sleep(0.05)
            else:
                return

    def _run(self, command: Sequence[str]) -> None:
        ran = subprocess.run(  # noqa: S603 - a program of the system, no shell
            command, capture_output=True, text=True, check=False, **self._as_user()
        )
        if ran.returncode:
            raise DatabaseError(f"{Path(command[0]).name}: {ran.stderr.strip()}")

    def _as_user(self) -> dict[str, Any]:
        user = _user()
        if user is None:
            return {"cwd": self._folder}
        home = {"HOME": str(self._folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        ids = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        return {"cwd": self._folder, "env": home, **ids}


def _bin() -> Path | None:
    if found := shutil.which("initdb"):
        return Path(os.path.realpath(found)).parent
    for place in _PLACES:
        for folder in sorted(Path(place).glob("*/bin"), reverse=True):
            if (folder / "initdb").exists():
                return folder
    return None


def _user() -> pwd.struct_passwd | None:
    """Return the system user for the server if this process is root; None: the current user."""
    if os.geteuid():
        return None
    for name in _RUN_BY:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    return None
