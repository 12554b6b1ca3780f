"""Connections to a PostgreSQL server, and the classification of its errors.

An error is a config error (a wrong password), a transient outside error (the server is down), or a
problem of the sink's state (a missing column). No message has a password.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, cast

import adbc_driver_postgresql.dbapi as adbc
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from .....actors.settings import not_blank
from .....events.model import Resource
from ...spi.config import ConfigInvalid, Definition, Importance, Width, has_reference
from ...spi.context import NO_LIMITS, AccessLimits
from ...spi.errors import Away
from ...spi.keys.kinds import number_key, secret_key, text_key
from ...spi.lineage import Dataset
from .hang_detection import CallThread, Watch, WatchedAdbc, WatchedConnection
from .names import NAME_BYTES
from .session_settings import Login, first_query, is_checked, refuse_shared, remedy_of, settings_of
from .url import flaw_in_files, parameters

CONNECT_S: Final = 10
"""The timeout of a new connection."""
QUERY_TIMEOUT_MS: Final = 600_000
"""The default statement timeout, as in Debezium."""
_SESSION: Final = {
    "application_name": "",
    "connect_timeout": str(CONNECT_S),
    "tcp_user_timeout": "30000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
}
_WRONG_CONFIG: Final = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    'role "',
    'database "',
    "does not support SSL",
    "authentication failed",
    "no such database",  # of pgbouncer
    "no such user",
    "unsupported startup parameter",
)
"""Texts of permanent connection errors: libpq gives no error code for them."""
_NO_SETTING: Final = ("42704", "42501", "55P02")
"""SQLSTATEs of settings that there are not, or that this role or a session cannot set."""
_MAY_PASS: Final = (
    "starting up",
    "shutting down",
    "too many",
    "recovery",
    "not yet accepting",
    "not currently",
)

_AWAY_CLASSES: Final = ("08", "57", "53", "40", "58")
_AWAY_STATES: Final = ("55P03", "25006", "55006", "25P03", "25P04", "72000")
"""SQLSTATEs of transient errors: lock timeout, read-only server, object in use; a transaction
or a snapshot that the server ended by a timeout."""
_FULL_STATE: Final = "53100"


def connection_keys(end: str, user: str) -> Sequence[Definition]:
    """Return the connection keys of one end of a pipeline.

    `user` documents the role.
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
    """Return the errors of an end's URL, which must not have a password, by its key."""
    key = f"{end}.connection.url"
    url = config.get(key, "")
    if not url or has_reference(url):
        return {}
    try:
        has_password = "password" in parameters(url)
    except ValueError as error:
        return {key: str(error)}
    sealed = f"{end}.connection.password"
    return {key: f"holds a password: give it as {sealed}, which is sealed"} if has_password else {}


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a database, with session settings; `key` is the config key to blame."""

    conninfo: str = field(repr=False)
    shown: str
    """Host, port and database, for messages."""
    key: str
    timeout_s: float = QUERY_TIMEOUT_MS / 1000
    """The statement timeout."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, hash=False)
    """What each session sets at its beginning."""

    @classmethod
    def of(
        cls,
        end: str,
        config: Mapping[str, str],
        application: str = "fairlead",
        reach: AccessLimits = NO_LIMITS,
    ) -> "Server":
        """Return the server of an end, `source` or `sink`; raises `ConfigInvalid`."""
        key = f"{end}.connection.url"
        try:
            parts = parameters(config[key])
            if flaw := flaw_in_files(parts, reach):
                raise ConfigInvalid(f"{key}: {flaw}")
            for name in ("user", "password"):
                if given := config.get(f"{end}.connection.{name}"):
                    parts[name] = given
            session = {**_SESSION, "application_name": application}
            timeout = int(config.get(f"{end}.query.timeout.ms", QUERY_TIMEOUT_MS))
            zone = config.get(f"{end}.db.timezone") or "UTC"
            settings, options = settings_of(parts.pop("options", ""), zone, timeout)
            # Without any, libpq would take those of the node's environment.
            conninfo = make_conninfo("", **{**session, **parts, "options": options})
        except (ValueError, psycopg.Error) as error:
            raise ConfigInvalid(f"{key}: {error}") from None
        where = f"{parts.get('host', 'localhost')}:{parts.get('port', '5432')}"
        shown = f"{where}/{parts.get('dbname', parts.get('user', ''))}"
        return cls(conninfo, shown, key, timeout / 1000, settings)

    def connect(self) -> "psycopg.Connection[Any]":
        """Open a psycopg connection in autocommit mode.

        Raises `ConfigInvalid` for permanent errors, and if transactions share sessions; else
        `Away`.
        """
        try:
            connection = self._begun()
            refuse_shared(self._login, connection, self._begun)
        except psycopg.Error as error:
            if error.sqlstate and (error.sqlstate[:2] == "22" or error.sqlstate in _NO_SETTING):
                raise ConfigInvalid(f"{self.key}: {self.shown}: {brief(str(error))}") from None
            raise self._refused(str(error)) from None
        return connection

    @property
    def _login(self) -> Login:
        user = conninfo_to_dict(self.conninfo).get("user")
        return Login(self.shown, str(user or ""))

    def _begun(self) -> "WatchedConnection":
        connection = WatchedConnection.connect(self.conninfo, autocommit=True)
        connection.watch = Watch(self.conninfo, self.timeout_s)
        try:
            row = connection.execute(first_query(self.settings)).fetchone()
        except psycopg.Error:
            connection.close()
            raise
        connection.watch.pid = row[0] if row else 0
        return connection

    def connect_adbc(self, *, autocommit: bool = False) -> "adbc.Connection":
        """Open an ADBC connection; without `autocommit` the caller commits.

        Raises as `connect` does.
        """
        if not is_checked(self._login):
            self.connect().close()
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
                first = first_query(self.settings).as_string()
                thread.watch.pid = cursor.execute(first).fetchone()[0]
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


def dataset_in(end: str, config: Mapping[str, str], table: str) -> Dataset:
    """Return the lineage dataset of a table; of the database if `table` is empty."""
    parts = parameters(config[f"{end}.connection.url"])
    database = parts.get("dbname", parts.get("user", ""))
    place = f"{parts.get('host', 'localhost')}:{parts.get('port', '5432')}"
    return Dataset(f"postgres://{place}", f"{database}.{table}" if table else database)


def application_name(kind: str, task: Resource, cluster_id: str) -> str:
    """Return the unique application name for the sessions of a task's source or sink."""
    digest = blake2b(f"{cluster_id}\0{task}".encode(), digest_size=4).hexdigest()
    shown = f"fairlead {kind} {task}".encode("ascii", "replace").decode()
    return f"{shown[: NAME_BYTES - len(digest) - 1]} {digest}"


def brief(text: str) -> str:
    """Return the first line of an error, without the common prefixes."""
    line = next(iter(text.strip().splitlines()), "").strip()
    for noise in ("connection failed: ", "IO: [libpq] ", "Failed to connect: "):
        line = line.removeprefix(noise)
    for mark in ("FATAL:  ", "ERROR:  "):  # before it the client's text, after it the server's
        before, found, after = line.partition(mark)
        line = after if found and "connection to server" not in before else before + after
    line += remedy_of(line)
    return f"{line} (query.timeout.ms)" if line.endswith("due to statement timeout") else line


def is_away(error: Exception) -> bool:
    """Return whether an error is transient, so that a retry may succeed."""
    state: str | None = getattr(error, "sqlstate", None)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and state is None:
        return True
    if isinstance(error, adbc.OperationalError) and not state:
        return True
    return state is not None and (state[:2] in _AWAY_CLASSES or state in _AWAY_STATES)


def is_full(error: Exception) -> bool:
    """Return whether the server's disk is full."""
    return getattr(error, "sqlstate", None) == _FULL_STATE


def is_data(error: Exception) -> bool:
    """Return whether the server refused values: a data exception or a constraint violation."""
    return (getattr(error, "sqlstate", None) or "")[:2] in {"22", "23"}
