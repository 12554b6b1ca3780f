# pyright: basic
"""The settings of a session, by its first query, and poolers under which they would not last.

A pooler such as pgbouncer refuses the startup parameter `options`, or ignores it without a word.
What a session's first query sets lasts as long as the client has the session: under
`pool_mode=session` until it disconnects, under `transaction` it is another client's by then.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from ...spi.config import ConfigInvalid

_OURS: Final[Mapping[str, str]] = {
    "lock_timeout": "30s",  # a locked table shows in the status
    "idle_in_transaction_session_timeout": "120s",  # a stopped process must not keep its locks
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
_DURABLE: Final = sql.SQL(
    "CASE WHEN current_setting('synchronous_commit') = 'off'"
    " THEN set_config('synchronous_commit', 'on', false) END"
)
"""Turns on synchronous_commit, so that commits are durable whatever the server's default."""
_OPTION: Final = re.compile(r"(?:-c\s*|--)(?P<name>[\w.-]+)=(?P<value>(?:\\.|\S)*)\s*")
_CHECKED_S: Final = 60.0
"""How long the result of a check holds."""
_LOOKS: Final = 3
_LOST: Final = re.compile("prepared statement .*(already exists|does not exist)")
_SHARED: Final = (
    "a pooler is there that gives each transaction another session, and with it other settings and "
    "prepared statements: set pool_mode=session for this database or user in pgbouncer, or name "
    "the server itself"
)


class Login(NamedTuple):
    """A server, by its address, and a user: a pooler may share the sessions of some users only."""

    server: str
    user: str


_checked: Final[dict[Login, float]] = {}
"""The monotonic time of the last check of a server."""


def settings_of(options: str, zone: str, timeout_ms: int) -> tuple[Mapping[str, str], str]:
    """Return the settings of a session, those of `options` first, and the `options` that are left.

    `options` are those of a URL, as libpq has them; switches other than settings are left.
    """
    from_options, rest = dict[str, str](), options.strip()
    while match := _OPTION.match(rest):
        from_options[match["name"].replace("-", "_").lower()] = re.sub(
            r"\\(.)", r"\1", match["value"]
        )
        rest = rest[match.end() :]
    if rest:
        from_options, rest = {}, options
    from_config = {"timezone": zone, "statement_timeout": str(timeout_ms)}
    return {**from_options, **_OURS, **from_config}, rest


def first_query(settings: Mapping[str, str]) -> sql.Composed:
    """Return the query that sets up a session; its first column is the pid of its process."""
    settings_sql = [
        sql.SQL("set_config({}, {}, false)").format(sql.Literal(name), sql.Literal(value))
        for name, value in settings.items()
    ]
    return sql.SQL("SELECT pg_backend_pid(), {}").format(
        sql.SQL(", ").join([*settings_sql, _DURABLE])
    )


def is_checked(login: Login) -> bool:
    """Return whether `refuse_shared` has checked a server lately."""
    return time.monotonic() - _checked.get(login, -_CHECKED_S) < _CHECKED_S


def refuse_shared(
    login: Login,
    connection: "psycopg.Connection[Any]",
    connect: Callable[[], "psycopg.Connection[Any]"],
) -> None:
    """Raise `ConfigInvalid` if transactions share the sessions of a server.

    A pooler tells its clients other pids than those of the server's processes; only then is
    `connection` compared with a second one.
    """
    try:
        is_shared = not is_checked(login) and _is_shared(connection, connect)
    except psycopg.Error:
        connection.close()
        raise
    if is_shared:
        connection.close()
        raise ConfigInvalid(f"{login.server}: {_SHARED}. Nothing was read or written")
    _checked[login] = time.monotonic()


def remedy_of(text: str) -> str:
    """Return the remedy for an error that a pooler causes; empty for other errors."""
    if "unsupported startup parameter" in text:
        return (
            ": a pooler is there, which takes none of the switches in the URL's options but "
            "settings, as in -c search_path=shop; name others in its ignore_startup_parameters, "
            "and they have no effect"
        )
    return f": {_SHARED}" if _LOST.search(text) else ""


def _is_shared(
    connection: "psycopg.Connection[Any]", connect: Callable[[], "psycopg.Connection[Any]"]
) -> bool:
    pid = _pid_of(connection)
    if pid == connection.info.backend_pid:
        return False
    with connect() as other:
        looks = [(_pid_of(other), _pid_of(connection)) for _ in range(_LOOKS)]
    return any(its == pid or mine != pid for its, mine in looks)


def _pid_of(connection: "psycopg.Connection[Any]") -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row[0] if row else 0
