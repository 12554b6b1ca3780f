"""How a server is reached, and what its refusals mean to a task.

A refusal is the fault of the config (a wrong password), of what is outside and away for a while
(the server is down), or of the sink's state (a column is gone): each is told in its own way. No
text that leaves here holds a password.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import adbc_driver_postgresql.dbapi as adbc
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from .....actors.settings import not_blank
from .....events.model import Resource
from ...spi.config import ConfigInvalid, Definition, Importance, Width, is_deferred
from ...spi.errors import Away
from ...spi.key_kinds import number_key, secret_key, text_key
from ...spi.lineage import Dataset
from .answers import CallThread, Watch, WatchedAdbc, WatchedConnection

CONNECT_S: Final = 10
"""How long a connection may take to come about."""
QUERY_TIMEOUT_MS: Final = 600_000
"""How long a statement may take unless a config says so, as in Debezium."""
_NAME_BYTES: Final = 63
"""How much of a name PostgreSQL keeps."""

_SESSION: Final = {
    "application_name": "",
    "connect_timeout": str(CONNECT_S),
    "tcp_user_timeout": "30000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
}
_OPTIONS: Final = " ".join(
    f"-c {each}"
    for each in (
        "lock_timeout=30s",  # a table that others have locked is waited for in the status
        "idle_in_transaction_session_timeout=120s",  # a stopped process must not keep its locks
        "datestyle=ISO",
        "intervalstyle=iso_8601",
        "bytea_output=hex",
        "extra_float_digits=1",
    )
)
_OF_JDBC: Final = {
    "user": "user",
    "password": "password",
    "currentSchema": "options",
    "ssl": "sslmode",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "ApplicationName": "",
    "stringtype": "",
    "reWriteBatchedInserts": "",
    "connectTimeout": "",
    "socketTimeout": "",
    "loginTimeout": "",
    "tcpKeepAlive": "",
}
"""What a parameter of a JDBC URL is to libpq; "": it means nothing here."""

_WRONG_CONFIG: Final = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    'role "',
    'database "',
    "does not support SSL",
    "authentication failed",
)
"""Words of refusals that waiting does not mend: libpq gives no error code with them."""
_MAY_PASS: Final = ("starting up", "shutting down", "too many", "recovery", "not yet accepting")

_AWAY_CLASSES: Final = ("08", "57", "53", "40", "58")
_AWAY_STATES: Final = ("55P03", "25006", "55006", "25P03", "25P04", "72000")
"""A lock that was not to be had in time, a server that only reads, an object in use; a transaction,
or a snapshot, that the server ended because it was left alone for too long."""
_FULL_STATE: Final = "53100"


def connection_keys(end: str, user: str) -> Sequence[Definition]:
    """Return the keys of how a database is reached, for one end of a pipeline.

    `user` says what the role is for.
    """
    return (
        text_key(
            f"{end}.connection.url",
            "The database: postgresql://host:5432/database, or the same as jdbc:postgresql://…",
            importance=Importance.HIGH,
            required=True,
            validator=not_blank,
            width=Width.LONG,
        ),
        text_key(f"{end}.connection.user", user, "", importance=Importance.HIGH),
        secret_key(
            f"{end}.connection.password",
            "The password; it is sealed before it is written down.",
            importance=Importance.HIGH,
        ),
        number_key(
            f"{end}.query.timeout.ms",
            "How long the server may work at one statement: it is ended then, and tried again.",
            QUERY_TIMEOUT_MS,
            least=1_000,
            importance=Importance.LOW,
        ),
    )


def flaws_in_url(end: str, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with the URL of an end, which may hold no password, by its key."""
    key = f"{end}.connection.url"
    url = config.get(key, "")
    if not url or is_deferred(url):
        return {}
    try:
        has_password = "password" in parameters(url)
    except ValueError as error:
        return {key: str(error)}
    sealed = f"{end}.connection.password"
    return {key: f"holds a password: give it as {sealed}, which is sealed"} if has_password else {}


@dataclass(frozen=True, slots=True)
class Server:
    """Where a database is and who asks; `key` is what to change if it cannot be reached."""

    conninfo: str = field(repr=False)
    shown: str
    """Host, port and database, as people are told."""
    key: str
    timeout_s: float = QUERY_TIMEOUT_MS / 1000
    """How long it may work at one statement."""

    @classmethod
    def of(cls, end: str, config: Mapping[str, str], application: str = "fairlead") -> "Server":
        """Return what the keys of an end, `source` or `sink`, say; raises `ConfigInvalid`."""
        key = f"{end}.connection.url"
        try:
            parts = parameters(config[key])
            for name in ("user", "password"):
                if given := config.get(f"{end}.connection.{name}"):
                    parts[name] = given
            session = {**_SESSION, "application_name": application}
            timeout = int(config.get(f"{end}.query.timeout.ms", QUERY_TIMEOUT_MS))
            zone = config.get(f"{end}.db.timezone") or "UTC"
            ours = f"{_OPTIONS} -c timezone={zone} -c statement_timeout={timeout}"
            options = f"{parts.pop('options', '')} {ours}".strip()
            conninfo = make_conninfo("", **{**session, **parts, "options": options})
        except (ValueError, psycopg.Error) as error:
            raise ConfigInvalid(f"{key}: {error}") from None
        where = f"{parts.get('host', 'localhost')}:{parts.get('port', '5432')}"
        shown = f"{where}/{parts.get('dbname', parts.get('user', ''))}"
        return cls(conninfo, shown, key, timeout / 1000)

    def connect(self) -> "psycopg.Connection[Any]":
        """Return a connection on which every statement counts at once.

        Raises `ConfigInvalid` where trying again cannot help, else `Away`.
        """
        try:
            made = WatchedConnection.connect(self.conninfo, autocommit=True)
            made.watch = Watch(self.conninfo, self.timeout_s)
            row = made.execute(_BEGIN).fetchone()
        except psycopg.OperationalError as error:
            raise self._refused(str(error)) from None
        made.watch.pid = row[0] if row else 0
        return made

    def connect_adbc(self, *, autocommit: bool = False) -> "adbc.Connection":
        """Return a connection of ADBC, whose transactions are its user's to commit."""
        thread = CallThread(Watch(self.conninfo, self.timeout_s))
        try:
            connect = cast("Callable[..., adbc.Connection]", adbc.connect)  # pyright: ignore[reportUnknownMemberType]
            made = thread.run(connect, self.conninfo, autocommit=autocommit)
        except adbc.Error as error:
            thread.end()
            raise self._refused(str(error)) from None
        watched = WatchedAdbc(made, thread)
        try:
            with watched.cursor() as cursor:
                (thread.watch.pid, _) = cursor.execute(_BEGIN).fetchone()
            if not autocommit:
                watched.commit()
        except adbc.Error as error:
            watched.close()
            raise self._refused(str(error)) from None
        return cast("adbc.Connection", watched)

    def _refused(self, text: str) -> Exception:
        first = brief(text)
        is_final = any(each in first for each in _WRONG_CONFIG)
        if is_final and not any(each in first for each in _MAY_PASS):
            return ConfigInvalid(f"{self.key}: {self.shown}: {first}")
        return Away(f"{self.shown}: {first}")


_BEGIN: Final = (
    "SELECT pg_backend_pid(), CASE WHEN current_setting('synchronous_commit') = 'off'"
    " THEN set_config('synchronous_commit', 'on', false) END"
)
"""What a statement that has succeeded wrote must survive a crash, whatever the server's default."""


def parameters(url: str) -> dict[str, str]:
    """Return what a URL of libpq or of JDBC says, by libpq's names; raises `ValueError`."""
    if not url.startswith("jdbc:"):
        return _of_libpq(url)
    split = urlsplit(url.removeprefix("jdbc:"))
    if split.scheme != "postgresql":
        raise ValueError("is no URL of a database: jdbc:postgresql://host:5432/database")
    found = _of_libpq(urlunsplit(split._replace(query="")))
    for name, value in parse_qsl(split.query):
        if name not in _OF_JDBC:
            raise ValueError(f"the parameter {name} of a JDBC URL means nothing here")
        if name == "currentSchema":
            found["options"] = f"-c search_path={value}"
        elif name == "ssl":
            found.setdefault("sslmode", "require" if value != "false" else "prefer")
        elif _OF_JDBC[name]:
            found[_OF_JDBC[name]] = value
    return found


def _of_libpq(url: str) -> dict[str, str]:
    try:
        found = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # whose text may quote the URL, with a password in it
        raise ValueError("is no URL of a database: postgresql://host:5432/database") from None
    return {name: str(value) for name, value in found.items() if value is not None}


def dataset_in(end: str, config: Mapping[str, str], table: str) -> Dataset:
    """Return a table of a config's database as lineage names it; the database if none is given."""
    parts = parameters(config[f"{end}.connection.url"])
    database = parts.get("dbname", parts.get("user", ""))
    place = f"{parts.get('host', 'localhost')}:{parts.get('port', '5432')}"
    return Dataset(f"postgres://{place}", f"{database}.{table}" if table else database)


def application_name(kind: str, task: Resource, cluster_id: str) -> str:
    """Return what all sessions of a task's end are called, and no others."""
    digest = blake2b(f"{cluster_id}\0{task}".encode(), digest_size=4).hexdigest()
    shown = f"fairlead {kind} {task}".encode("ascii", "replace").decode()
    return f"{shown[: _NAME_BYTES - len(digest) - 1]} {digest}"


def brief(text: str) -> str:
    """Return what a refusal says in one line, without the words that all of them begin with."""
    line = next(iter(text.strip().splitlines()), "").strip()
    for noise in ("connection failed: ", "IO: [libpq] ", "Failed to connect: "):
        line = line.removeprefix(noise)
    for mark in ("FATAL:  ", "ERROR:  "):  # the client's words before, the server's after it
        before, found, after = line.partition(mark)
        line = after if found and "connection to server" not in before else before + after
    return f"{line} (query.timeout.ms)" if line.endswith("due to statement timeout") else line


def is_away(error: Exception) -> bool:
    """Tell whether an error of the server's passes by itself: it is worth another attempt."""
    state: str | None = getattr(error, "sqlstate", None)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and state is None:
        return True
    if isinstance(error, adbc.OperationalError) and not state:
        return True
    return state is not None and (state[:2] in _AWAY_CLASSES or state in _AWAY_STATES)


def is_full(error: Exception) -> bool:
    """Tell whether the server has no room left on its disk."""
    return getattr(error, "sqlstate", None) == _FULL_STATE


def is_data(error: Exception) -> bool:
    """Tell whether the server refused values: one that does not fit, or breaks a constraint."""
    return (getattr(error, "sqlstate", None) or "")[:2] in {"22", "23"}
