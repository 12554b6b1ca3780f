"""A PostgreSQL server for tests: a cluster in a separate folder, on a free loopback port.

PostgreSQL refuses to run as root, so then a system user runs it. A crash of the machine is not
tested, so fsync is off unless a test enables it.
"""

import hmac
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import pbkdf2_hmac, sha256
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from fairlead.actors.transport.ports import free_port

PASSWORD = "a-secret-pass-phrase"
PATIENCE_S = 90.0
_RUN_BY = ("postgres", "nobody")
"""The users that may run a server if the tests run as root: the first existing one."""
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "logical",
    "max_prepared_transactions": "20",
    "max_connections": "60",
    "max_replication_slots": "20",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}


_EMPTY: tuple[LiteralString, ...] = (
    """SELECT pg_terminate_backend(pid, 5000) FROM (SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() OFFSET 0) others""",
    """SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
       WHERE database = current_database()""",
    """DO $$ DECLARE each text; BEGIN
       FOR each IN SELECT pubname FROM pg_publication LOOP
           EXECUTE format('DROP PUBLICATION %I', each); END LOOP;
       FOR each IN SELECT nspname FROM pg_namespace
           WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
           EXECUTE format('DROP SCHEMA %I CASCADE', each); END LOOP; END $$""",
    "CREATE SCHEMA public",
)


class NoServer(Exception):  # noqa: N818  # what is the case, not what went wrong
    """A server is not available; the message says why."""


@dataclass
class PostgresServer:
    """A cluster that can be stopped, killed and started again on the same port."""

    folder: Path
    bin: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    _process: "subprocess.Popen[Any] | None" = None
    _asked: "dict[str, psycopg.Connection[Any]]" = field(default_factory=dict)
    """The connections that statements of tests go by, one to a database."""

    @classmethod
    def create(cls, folder: Path, **settings: str) -> "PostgresServer":
        """Make a cluster whose superuser has `PASSWORD`; raises `NoServer`.

        Whoever runs the server has to come to the folder: pytest's own are root's alone.
        """
        folder.mkdir()
        subprocess.run(["cp", "-a", f"{_first_cluster().name}/data", folder], check=True)
        owned_by_server_user(folder)
        return cls(folder, _bin(), free_port(), {**_SETTINGS, **settings})

    @property
    def data(self) -> Path:
        """The folder of the cluster itself."""
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """Return what configs call it by, without the password."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [
            each for name, value in self.settings.items() for each in ("-c", f"{name}={value}")
        ]
        command = [str(self.bin / "postgres"), "-D", str(self.data), "-p", str(self.port), *options]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                tied_to_run(command), stdout=log, stderr=log, **as_server_user(self.folder)
            )
        self._process = process
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_ready(process.pid):
            assert process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _is_ready(self, pid: int) -> bool:
        """Tell whether its own file says so; a connection would cost it a process each time."""
        try:
            told = (self.data / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return False
        return told[:1] == [str(pid)] and told[-1] == "ready"

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it, by default as its fast shutdown does, and wait until it is gone."""
        self._hang_up()
        process, self._process = self._process, None
        if process:
            process.send_signal(how)
            process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill all its processes."""
        self._hang_up()
        process, self._process = self._process, None
        assert process
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        process.wait(PATIENCE_S)
        # One that has not ended yet holds the memory that a server which is started looks for.
        wait_until(lambda: not any(map(_runs, children)))

    def empty(self, name: str) -> "Database":
        """Return a database with nothing in it and nobody connected to it."""
        admin = self.asked()
        if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            make = sql.SQL("CREATE DATABASE {}")
            admin.execute(make.format(sql.Identifier(name)))
        connection = self.asked(name)
        for statement in _EMPTY:
            connection.execute(statement)
        return Database(self, name)

    def asked(self, database: str = "postgres") -> "psycopg.Connection[Any]":
        """Return the connection with autocommit that is kept: a new one is much of a test."""
        kept = self._asked.get(database)
        if kept is None or kept.closed:
            kept = psycopg.connect(self.url(database), password=PASSWORD, autocommit=True)
            kept.prepare_threshold = None  # tables come and go under the same names
            self._asked[database] = kept
        return kept

    def _hang_up(self) -> None:
        while self._asked:
            self._asked.popitem()[1].close()

    @contextmanager
    def connected(self, database: str = "postgres") -> Generator["psycopg.Connection[Any]"]:
        """Yield a connection with autocommit."""
        with psycopg.connect(self.url(database), password=PASSWORD, autocommit=True) as made:
            yield made


def owned_by_server_user(path: Path) -> None:
    """Give a file to who runs servers, if that is somebody else."""
    if user := _run_by():
        os.chown(path, user.pw_uid, user.pw_gid)


def as_server_user(home: Path) -> dict[str, Any]:
    """Return the arguments of a process that runs in a folder as who runs servers."""
    user = _run_by()
    if not user:
        return {"cwd": home}
    return {
        "cwd": home,
        "env": {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        "user": user.pw_uid,
        "group": user.pw_gid,
        "extra_groups": (),
    }


def tied_to_run(command: list[str], how: signal.Signals = signal.SIGINT) -> list[str]:
    """Return the command line of a server that gets a signal once the thread that started it ends.

    `actors.tether` does this with our Python, which the user who runs servers may not run.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", how.name.removeprefix("SIG"), *command] if setpriv else command


@cache
def _first_cluster() -> "tempfile.TemporaryDirectory[str]":
    """Make the cluster that all others are copies of; raises `NoServer`."""
    bin_folder, made = _bin(), tempfile.TemporaryDirectory(prefix="fairlead-postgres-")
    folder = Path(made.name)
    password = folder / "password"
    password.write_text(_verifier(PASSWORD))
    for each in (folder, password):
        owned_by_server_user(each)
    command = [str(bin_folder / "initdb"), "--pgdata", str(folder / "data")]
    command += ["--username", "postgres", "--pwfile", str(password), "--auth", "scram-sha-256"]
    command += ["--no-sync", "--encoding", "UTF8"]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, **as_server_user(folder)
    )
    if ran.returncode:
        made.cleanup()
        raise NoServer(f"initdb: {ran.stderr.strip()}")
    return made


def _verifier(password: str) -> str:
    """Return what a server knows a password by, with one round of hashing (RFC 5802).

    The usual 4,096 rounds are most of what a connection costs a client.
    """
    salt = secrets.token_bytes(16)
    salted = pbkdf2_hmac("sha256", password.encode(), salt, 1)
    client, server = (
        hmac.digest(salted, f"{end} Key".encode(), "sha256") for end in ("Client", "Server")
    )
    stored, known = (b64encode(each).decode() for each in (sha256(client).digest(), server))
    return f"SCRAM-SHA-256$1:{b64encode(salt).decode()}${stored}:{known}"


@contextmanager
def started(**settings: str) -> Generator[PostgresServer]:
    """Yield a server in a temporary folder; raises `NoServer`."""
    with tempfile.TemporaryDirectory(prefix="fairlead-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer.create(Path(folder) / "cluster", **settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@dataclass(frozen=True)
class Database:
    """One database of a server, for one test."""

    server: PostgresServer
    name: str

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def run(self, statement: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement in its own transaction; return its rows, if any."""
        cursor = self.server.asked(self.name).execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def session(self) -> Generator["psycopg.Connection[Any]"]:
        """Yield a connection whose transactions the test ends itself."""
        with psycopg.connect(self.url, password=PASSWORD) as made:
            yield made


def wait_until(what: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


def _bin() -> Path:
    if found := shutil.which("initdb"):
        return Path(os.path.realpath(found)).parent
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    raise NoServer("there is no initdb: tests/servers/install-postgres installs PostgreSQL")


def _run_by() -> pwd.struct_passwd | None:
    if os.geteuid():
        return None
    for name in _RUN_BY:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoServer(f"PostgreSQL does not run as root, and there is no user {' or '.join(_RUN_BY)}")
