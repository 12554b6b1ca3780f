# pyright: basic
"""The options of Spark's JDBC connections, and the classification of driver errors."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ...engines.failures import failure_text
from ...spi.config import ConfigInvalid, has_reference
from ...spi.context import AccessLimits, ProbeResult
from ...spi.lineage import Dataset

_FETCHED: Final = "10000"
"""The fetch size in rows."""
_LONGEST: Final = 4_000
"""How many characters of an error are searched."""
_AWAY: Final = re.compile(
    r"connect(?:ion)?s?\b[^\n]{0,200}\b(?:refused|reset|failed|closed|lost|timed out)"
    r"|terminating connection|communications link failure|unknown ?host|no route to host"
    r"|(?:Transient|Recoverable)\w*Exception|failed to start database|broken pipe|shutting down"
    r"|starting up|too many (?:clients|connections)|deadlock|I/O error",
    re.IGNORECASE,
)
_NO_DRIVER: Final = re.compile(
    r"no suitable driver|ClassNotFoundException|Did not find .*driver", re.I
)


def options(end: str, config: Mapping[str, str], reach: AccessLimits) -> dict[str, str]:
    """Return the options for Spark's JDBC source; raises `ConfigInvalid` for a URL not allowed."""
    key = f"{end}.connection.url"
    url = config[key]
    if flaw := reach.flaw_in_jdbc(url):
        raise ConfigInvalid(f"{key}: {flaw}")
    timeout_s = int(config.get(f"{end}.query.timeout.ms") or 600_000) // 1000
    parsed = {"url": url, "queryTimeout": str(timeout_s), "fetchsize": _FETCHED}
    for name in ("user", "password", "driver"):
        if given := config.get(f"{end}.connection.{name}"):
            parsed[name] = given
    return parsed


def probe_url(end: str, config: Mapping[str, str], reach: AccessLimits) -> ProbeResult:
    """Check that the node allows the URL of an end."""
    key = f"{end}.connection.url"
    url = config.get(key, "")
    flaw = None if has_reference(url) else reach.flaw_in_jdbc(url)
    return ProbeResult({key: flaw} if flaw else {})


def why_away(error: BaseException) -> str:
    """Return why the database is unreachable; empty for other errors."""
    return _message(error) if any(map(_AWAY.search, _texts(error))) else ""


def missing_driver_error(end: str, error: BaseException) -> ConfigInvalid | None:
    """Return `ConfigInvalid` if the driver is missing; None for other errors."""
    if not any(map(_NO_DRIVER.search, _texts(error))):
        return None
    return ConfigInvalid(
        f"{end}.connection.url: there is no driver for it ({_message(error)}): have its jar in "
        f"spark.conf.spark.driver.extraClassPath of the node, its class in {end}.connection.driver"
    )


def dataset_in(end: str, config: Mapping[str, str], table: str) -> Dataset:
    """Return the lineage dataset of a table; the namespace is the URL without parameters."""
    url = config[f"{end}.connection.url"].removeprefix("jdbc:")
    return Dataset(re.split(r"[?;]", url, maxsplit=1)[0], table)


def _message(error: BaseException) -> str:
    return (failure_text(error) if isinstance(error, Exception) else None) or str(error)


def _texts(error: BaseException | None) -> Iterator[str]:
    """Yield the texts of an error and its causes, with the names of Java classes."""
    while error is not None:
        yield _message(error)
        yield str(error)[:_LONGEST]
        error = error.__cause__
