"""The URL of a database: the parameters of libpq that it may have, each with why it may.

The author of a config is not the node's operator, so this is a list of what is taken. A parameter
that is not on it may read or write files of the node's user (`sslkeylogfile`, `passfile`,
`service`), use the node's own credentials (`gssdelegation`, `hostaddr` with a password file), take
over what the connector does itself, or come with a later libpq.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ...spi.context import AccessLimits
from ...untrusted.plain_file import flaw_in_plain_file

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
"""The libpq parameter for a parameter of a JDBC URL; empty: it is ignored."""

_PLACE: Final = "the database itself, and who asks"
_PICK: Final = "only which of the named servers is taken"
_WAIT: Final = "only how a connection is kept and found dead; no wait is without an end"
_TLS: Final = "only how the encrypted connection is agreed on, and what is asked of the server"
_FILE: Final = "a plain file that the connector may reach: it is looked at before libpq reads it"
_SERVER: Final = "settings of the session, which the server allows to this user"

ALLOWED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("dbname", "host", "password", "port", "user"), _PLACE),
    **dict.fromkeys(("load_balance_hosts", "target_session_attrs"), _PICK),
    **dict.fromkeys(
        (
            "connect_timeout",
            "keepalives",
            "keepalives_count",
            "keepalives_idle",
            "keepalives_interval",
            "tcp_user_timeout",
        ),
        _WAIT,
    ),
    **dict.fromkeys(
        (
            "channel_binding",
            "gssencmode",
            "krbsrvname",
            "max_protocol_version",
            "min_protocol_version",
            "require_auth",
            "requirepeer",
            "ssl_max_protocol_version",
            "ssl_min_protocol_version",
            "sslcertmode",
            "sslcompression",
            "sslmode",
            "sslnegotiation",
            "sslpassword",
            "sslsni",
        ),
        _TLS,
    ),
    **dict.fromkeys(("sslcert", "sslcrl", "sslkey", "sslrootcert"), _FILE),
    **dict.fromkeys(("application_name", "fallback_application_name", "options"), _SERVER),
}
"""The parameters that are taken, with the reason why no harm comes of them."""

_LONGEST_WAIT_S: Final = 60
_SYSTEM: Final = "system"
"""What stands in place of `sslrootcert` for the authorities that the machine trusts."""


def parameters(url: str) -> dict[str, str]:
    """Parse a libpq or JDBC URL to libpq parameters; raises `ValueError`, also for other ones."""
    if not url.startswith("jdbc:"):
        return _of_libpq(url)
    split = urlsplit(url.removeprefix("jdbc:"))
    if split.scheme != "postgresql":
        raise ValueError("is no URL of a database: jdbc:postgresql://host:5432/database")
    parsed = _of_libpq(urlunsplit(split._replace(query="")))
    for name, value in parse_qsl(split.query):
        if name not in _OF_JDBC:
            raise ValueError(f"the parameter {name} of a JDBC URL means nothing here")
        if name == "currentSchema":
            parsed["options"] = f"-c search_path={value}"
        elif name == "ssl":
            parsed.setdefault("sslmode", "require" if value != "false" else "prefer")
        elif _OF_JDBC[name]:
            parsed[_OF_JDBC[name]] = value
    return parsed


def flaw_in_files(libpq_parameters: Mapping[str, str], reach: AccessLimits) -> str:
    """Return why a connector must not use a file that its parameters name; empty if it may."""
    for name in (each for each, why in ALLOWED.items() if why == _FILE):
        path = libpq_parameters.get(name, "")
        if not path or (name, path) == ("sslrootcert", _SYSTEM):
            continue
        if flaw := reach.flaw_in_path(path) or flaw_in_plain_file(path):
            return f"{name}: {flaw}"
    return ""


def _of_libpq(url: str) -> dict[str, str]:
    try:
        parsed = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # whose text may quote the URL, with a password in it
        raise ValueError("is no URL of a database: postgresql://host:5432/database") from None
    for name, value in parsed.items():
        if name not in ALLOWED:
            raise ValueError(
                f"the parameter {name} is none of those that a connector may give: leave it out"
            )
        if name == "connect_timeout" and not _is_short(str(value)):
            raise ValueError(f"connect_timeout is from 1 to {_LONGEST_WAIT_S}, in seconds")
    return {name: str(value) for name, value in parsed.items() if value is not None}


def _is_short(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= int(text) <= _LONGEST_WAIT_S
