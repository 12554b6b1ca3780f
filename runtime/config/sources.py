"""Reads settings from a file, the environment and the command line; later sources override.

All values are texts here. All unknown or malformed settings are reported together, each with its
source and the setting with the most similar name.

What belongs to other programs is passed over: a node is started where a Connect worker was, with
its file, and in pods. Kubernetes gives each process variables for the services beside it, and those
of a service `fairlead` begin as ours do.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from ...actors.misspelling import hint


class ConfigError(Exception):
    """The configuration is invalid; nothing was started or changed.

    `problems` has one line for each error, with its source and what is allowed.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


SPARK: Final = "spark.conf."
ASSIGNORS: Final = "assignor.conf."
PASSED_ON: Final = (SPARK, ASSIGNORS)
"""The prefixes of settings that are passed through to Spark or assignors, with any name."""

ENVIRONMENT: Final = "FAIRLEAD_"
NOT_SETTINGS: Final = frozenset(
    f"{ENVIRONMENT}{each}"
    for each in (
        *("DEBUG", "URL", "CONTEXT", "CA", "CERT"),
        *("TOKEN", "TOKEN_FILE", "USER", "PASSWORD_FILE"),
    )
)
PROPERTIES: Final = ".properties"
COMMAND_LINE: Final = "the command line"
FIRST_PRINTABLE: Final = " "
DELETE: Final = "\x7f"

_STORED: Final = "configs, states and offsets are in the event log below data.dir"
_CONVERTED: Final = "each connector has its own formats (source.format, sink.format)"
_CONNECTED: Final = "each connector has its own connections to Kafka (source.*, sink.*)"
_MEASURED: Final = "GET /metrics has all metrics, for Prometheus"
_NOTHING: Final = ""

CONNECT: Final[Mapping[str, str]] = {
    "offset.storage.": _STORED,
    "config.storage.": _STORED,
    "status.storage.": _STORED,
    "key.converter": _CONVERTED,
    "value.converter": _CONVERTED,
    "header.converter": _CONVERTED,
    "internal.key.converter": _CONVERTED,
    "internal.value.converter": _CONVERTED,
    "bootstrap.servers": _CONNECTED,
    "producer.": _CONNECTED,
    "consumer.": _CONNECTED,
    "admin.": _CONNECTED,
    "sasl.": _CONNECTED,
    "security.": _CONNECTED,
    "connector.client.config.override.policy": _CONNECTED,
    "metric": _MEASURED,
    "auto.include.jmx.reporter": _MEASURED,
    "enable.metrics.push": _MEASURED,
    "plugin.discovery": "a plugin is scanned once, when it is added or has changed",
    "rest.extension.classes": "rest.authentication says who may call",
    "rest.port": "listeners has the port",
    "rest.host.name": "listeners has the host",
    "config.providers": "${file:…}, ${dir:…} and ${env:…} need no provider",
    "exactly.once.source.support": "each batch is committed exactly once",
    "topic.": "a Kafka sink says what topic it writes to",
    "client.": _NOTHING,
    "rest.advertised.listener": _NOTHING,
    "inter.worker.": _NOTHING,
    "worker.sync.": _NOTHING,
    "worker.unsync.": _NOTHING,
    "offset.flush.": _NOTHING,
    "metadata.": _NOTHING,
    "reconnect.backoff.": _NOTHING,
    "retry.backoff.": _NOTHING,
    "request.timeout.ms": _NOTHING,
    "default.api.timeout.ms": _NOTHING,
    "send.buffer.bytes": _NOTHING,
    "receive.buffer.bytes": _NOTHING,
    "connections.max.idle.ms": _NOTHING,
    "socket.connection.setup.": _NOTHING,
    "confluent.": _NOTHING,
    "ssl.provider": _NOTHING,
    "ssl.keymanager.algorithm": _NOTHING,
    "ssl.trustmanager.algorithm": _NOTHING,
    "ssl.secure.random.implementation": _NOTHING,
    "ssl.engine.factory.class": _NOTHING,
    "ssl.endpoint.identification.algorithm": _NOTHING,
    "ssl.allow.": _NOTHING,
}
"""Prefixes of the settings of Kafka Connect's workers (`WorkerConfig`, `DistributedConfig`) that
have no meaning here, and what there is instead."""

HTTPS: Final = "listeners.https."
"""What precedes settings of Connect for listeners of https alone."""
SSL: Final = "ssl."
PEM: Final = (".keystore.key", ".certificate.chain", ".truststore.certificates")
"""How the settings end whose values may have several lines."""

_SERVICE: Final = re.compile(
    r"FAIRLEAD(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?"
    r"|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)",
    re.ASCII,
)
"""The variables of a service that no setting can be meant by (the kubelet's `FromServices`)."""
_SERVICE_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://\S+:\d+", re.ASCII | re.IGNORECASE)


class GivenValue(NamedTuple):
    """The text of a value, and its source."""

    text: str
    source: str


class GivenSettings(NamedTuple):
    """The last value of each setting, and the keys of a file for Kafka Connect alone."""

    values: dict[str, GivenValue]
    passed_over: tuple[str, ...] = ()
    """The keys of a .properties file that have a meaning for Kafka Connect only."""


def gather(
    file: Path | None,
    environ: Mapping[str, str],
    overrides: Sequence[str],
    names: Collection[str],
) -> GivenSettings:
    """Return the last value of each setting, of file, environment, then `key=value` overrides.

    Settings that only a Connect worker has are passed over in a .properties file, which may be
    that worker's. Raises `ConfigError` with all unknown keys and malformed settings.
    """
    problems: list[str] = []
    passed_over: list[str] = []
    values: dict[str, GivenValue] = {}
    of_https: dict[str, GivenValue] = {}
    may_be_connects = f"file {file}" if file and file.suffix == PROPERTIES else None
    for settings in (
        _from_file(file) if file else (),
        _from_environment(environ, names, problems),
        _from_overrides(overrides, problems),
    ):
        for key, value in settings:
            own = key.removeprefix(HTTPS) if key.startswith(HTTPS + SSL) else key
            if value.source == may_be_connects and own not in names and is_of_connect(own):
                passed_over.append(key)
                continue
            if problem := _problem(key, value, names):
                problems.append(problem)
            (values if own == key else of_https)[own] = value
    if problems:
        raise ConfigError(problems)
    return GivenSettings(_with_those_of_https(values, of_https), tuple(passed_over))


def _with_those_of_https(
    values: Mapping[str, GivenValue], of_https: Mapping[str, GivenValue]
) -> dict[str, GivenValue]:
    """Return all settings; if one is of https alone, no other of `ssl.*` counts, as in Connect."""
    if not of_https:
        return dict(values)
    others = {key: each for key, each in values.items() if not key.startswith(SSL)}
    return {**others, **of_https}


def describe_passed_over(keys: Sequence[str]) -> list[str]:
    """Return lines that list keys without a meaning here, and what there is instead."""
    instead: dict[str, list[str]] = {}
    for key in keys:
        prefix = next((each for each in CONNECT if key.startswith(each)), "")
        named = f"{prefix}*" if prefix.endswith(".") else key
        names = instead.setdefault(CONNECT.get(prefix, _NOTHING), [])
        names.extend([named] if named not in names else [])
    lines = [f"instead of {', '.join(names)}: {text}" for text, names in instead.items() if text]
    return [f"these keys have no meaning here: {', '.join(keys)}", *lines] if keys else []


def _advice(key: str, known: Collection[str]) -> str:
    """Return a sentence with the most similar known key, or how to list all."""
    return hint(key, known) or "`fairlead config` lists all settings"


def _problem(key: str, value: GivenValue, known: Collection[str]) -> str | None:
    own = key.removeprefix(HTTPS) if key.startswith(HTTPS + SSL) else key
    if own not in known and not _is_passed_on(key):
        if is_of_connect(own):
            return f"{key} (from {value.source}) is only for Kafka Connect: remove it"
        return f"unknown setting {key!r} (from {value.source}): {_advice(own, known)}"
    text = "".join(value.text.splitlines()) if own.endswith(PEM) else value.text
    if any(letter < FIRST_PRINTABLE or letter == DELETE for letter in text):
        return f"{key} (from {value.source}) has control characters in its value: remove them"
    return None


def _is_passed_on(key: str) -> bool:
    return any(key.startswith(prefix) and key != prefix for prefix in PASSED_ON)


def _from_file(file: Path) -> Iterator[tuple[str, GivenValue]]:
    source = f"file {file}"
    try:
        if file.suffix == ".toml":
            with file.open("rb") as opened:
                settings = dict(_flatten(tomllib.load(opened, parse_float=str), source))
        elif file.suffix == PROPERTIES:
            import javaproperties  # noqa: PLC0415  # slow, and rarely needed

            with file.open("rb") as opened:
                settings = javaproperties.load(opened)  # pyright: ignore[reportUnknownMemberType]
        else:
            raise ConfigError([f"{file} is neither a .toml nor a .properties file: rename it"])
    except OSError as error:
        raise ConfigError([f"{file} cannot be read: {error.strerror or error}"]) from None
    except ValueError as error:  # also for a wrong encoding or escape
        raise ConfigError([f"{file} is not a valid {file.suffix} file: {error}"]) from None
    return ((key, GivenValue(value, source)) for key, value in settings.items())


def _flatten(
    table: Mapping[str, object], source: str, before: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the dotted keys of nested tables: `[a] b = 1` is the same as `a.b = 1`."""
    keys: set[str] = set()
    for name, value in table.items():
        inner = (
            _flatten(value, source, f"{before}{name}.")  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(value, dict)
            else [(before + name, _to_text(before + name, value, source))]
        )
        for key, text in inner:
            if key in keys:
                raise ConfigError([f"{key} occurs twice in {source}: keep one of them"])
            keys.add(key)
            yield key, text


def _to_text(key: str, value: object, source: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        items = cast("list[object]", value)
        if all(isinstance(item, str) for item in items):
            return ",".join(map(str, items))
    raise ConfigError(
        [f"{key} (from {source}) is neither a text, a number, true or false, nor a list of texts"]
    )


def _from_environment(
    environ: Mapping[str, str], names: Collection[str], problems: list[str]
) -> Iterator[tuple[str, GivenValue]]:
    variables = {variable_of(key): key for key in names}
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT) or variable in NOT_SETTINGS:
            continue
        if is_of_kubernetes(variable, environ[variable]):
            continue
        source = f"environment variable {variable}"
        passed_on = [each for each in PASSED_ON if variable.startswith(variable_of(each))]
        if passed_on:
            whose = "Spark" if passed_on[0] == SPARK else "assignors"
            problems.append(
                f"{variable}: settings of {whose} cannot be environment variables, whose names"
                f" have no dots or lower case: use a file or --set {passed_on[0]}NAME=VALUE"
            )
        elif variable in variables:
            yield variables[variable], GivenValue(environ[variable], source)
        else:
            problems.append(f"unknown setting in {source}: {_advice(variable, variables)}")


def variable_of(key: str) -> str:
    """Return the environment variable of a setting: FAIRLEAD_GROUP_ID for group.id."""
    return ENVIRONMENT + key.upper().replace(".", "_")


def _from_overrides(
    overrides: Iterable[str], problems: list[str]
) -> Iterator[tuple[str, GivenValue]]:
    for override in overrides:
        key, equals, text = override.partition("=")
        if equals:
            yield key.strip(), GivenValue(text.strip(), COMMAND_LINE)
        else:
            problems.append(f"{override!r} (from {COMMAND_LINE}) is not of the form key=value")


def is_of_connect(key: str) -> bool:
    """Return whether only a worker of Kafka Connect has this setting, if it is unknown here."""
    return key.startswith(tuple(CONNECT))


def is_of_kubernetes(variable: str, value: str) -> bool:
    """Return whether Kubernetes made a variable for a service whose name begins with `fairlead`.

    FAIRLEAD_ACTOR_PORT is one of a service `fairlead-actor` if it has a URL, else the setting.
    """
    if variable.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(value):
        return True
    return bool(_SERVICE.fullmatch(variable))
