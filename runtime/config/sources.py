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
from .connect_worker import SSL, TAKEN, is_of_clients, is_otherwise, is_taken


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
_TAKEN: Final = frozenset(each for each in TAKEN if not each.endswith("."))
"""The keys for plugin hosts that are no families."""
_WHOSE: Final = {SPARK: "Spark", ASSIGNORS: "assignors"}

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

HTTPS: Final = "listeners.https."
"""What precedes settings of Connect for listeners of https alone."""
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
    """The last value of each setting, and of each key that plugins of Kafka Connect need."""

    values: dict[str, GivenValue]
    of_worker: dict[str, GivenValue]
    """The keys that plugin hosts are given (`connect_worker`); `ssl.*` is in `values` as well."""
    passed_over: tuple[str, ...] = ()
    """The keys of a .properties file that have no meaning here."""


def gather(
    file: Path | None,
    environ: Mapping[str, str],
    overrides: Sequence[str],
    names: Collection[str],
) -> GivenSettings:
    """Return the last value of each setting, of file, environment, then `key=value` overrides.

    Keys of a Connect worker that have no meaning here are passed over in a .properties file, which
    may be that worker's. Raises `ConfigError` with all unknown keys and malformed settings.
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
            own = _without_https(key)
            if value.source == may_be_connects and own not in names and is_otherwise(key):
                passed_over.append(key)
                continue
            if problem := _problem(key, value, names):
                problems.append(problem)
            (values if own == key else of_https)[own] = value
    if problems:
        raise ConfigError(problems)
    return _sorted_out(values, of_https, names, passed_over)


def _sorted_out(
    values: Mapping[str, GivenValue],
    of_https: Mapping[str, GivenValue],
    names: Collection[str],
    passed_over: Sequence[str],
) -> GivenSettings:
    """Return the node's own settings apart from the keys for plugin hosts."""
    own = {key: each for key, each in values.items() if not _is_of_worker(key, names)}
    of_worker = {key: each for key, each in values.items() if key not in own or is_of_clients(key)}
    return GivenSettings(_with_those_of_https(own, of_https), of_worker, tuple(passed_over))


def _with_those_of_https(
    values: Mapping[str, GivenValue], of_https: Mapping[str, GivenValue]
) -> dict[str, GivenValue]:
    """Return all settings; if one is of https alone, no other of `ssl.*` counts, as in Connect."""
    if not of_https:
        return dict(values)
    others = {key: each for key, each in values.items() if not key.startswith(SSL)}
    return {**others, **of_https}


def _advice(key: str, known: Collection[str]) -> str:
    """Return a sentence with the most similar known key, or how to list all."""
    return hint(key, known) or "`fairlead config` lists all settings"


def _problem(key: str, value: GivenValue, known: Collection[str]) -> str | None:
    own = _without_https(key)
    if not (own in known or _is_passed_on(key) or is_taken(key)):
        if is_otherwise(key):
            return f"{key} (from {value.source}) is only for Kafka Connect: remove it"
        return f"unknown setting {key!r} (from {value.source}): {_advice(own, {*known, *_TAKEN})}"
    text = "".join(value.text.splitlines()) if own.endswith(PEM) else value.text
    if any(letter < FIRST_PRINTABLE or letter == DELETE for letter in text):
        return f"{key} (from {value.source}) has control characters in its value: remove them"
    return None


def _without_https(key: str) -> str:
    return key.removeprefix(HTTPS) if key.startswith(HTTPS + SSL) else key


def _is_passed_on(key: str) -> bool:
    return any(key.startswith(prefix) and key != prefix for prefix in PASSED_ON)


def _is_of_worker(key: str, names: Collection[str]) -> bool:
    return key not in names and not _is_passed_on(key) and is_taken(key)


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
    variables = {variable_of(key): key for key in {*names, *_TAKEN}}
    families = [*PASSED_ON, *(TAKEN.keys() - _TAKEN)]
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT) or variable in NOT_SETTINGS:
            continue
        if is_of_kubernetes(variable, environ[variable]):
            continue
        source = f"environment variable {variable}"
        family = next((each for each in families if variable.startswith(variable_of(each))), "")
        if variable in variables:
            yield variables[variable], GivenValue(environ[variable], source)
        elif family:
            problems.append(
                f"{variable}: settings of {_WHOSE.get(family, 'plugins')} cannot be environment"
                " variables, whose names have no dots or lower case: use a file or"
                f" --set {family}NAME=VALUE"
            )
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


def is_of_kubernetes(variable: str, value: str) -> bool:
    """Return whether Kubernetes made a variable for a service whose name begins with `fairlead`.

    FAIRLEAD_ACTOR_PORT is one of a service `fairlead-actor` if it has a URL, else the setting.
    """
    if variable.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(value):
        return True
    return bool(_SERVICE.fullmatch(variable))
