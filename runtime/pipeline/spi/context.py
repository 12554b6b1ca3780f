"""The services and limits that a node gives to its connectors and tasks.

The node's operator limits the folders that they may use, and the functions and tables in SQL.
"""

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakValueDictionary

from ....events.commits import Document
from ....events.model import Resource
from .config import ConfigInvalid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..engines.queries.query_check import QueryCheck

T = TypeVar("T")

_SETTING: Final = "paths.allow"
_JDBC: Final = "jdbc.allow"
_DATABASE: Final = re.compile(r"[\w/.-]*")
"""The allowed rest of a JDBC URL: a database without parameters."""
_ENDS: Final = ("/", ":", "@", "=", ",")
"""What the beginning of a JDBC URL ends with if anything may follow."""


@dataclass(frozen=True, slots=True)
class AccessLimits:
    """The resources of a node that connectors may use; the default has no limits.

    `data_dir` is the node's own folder, which no connector may use. Sources and sinks must lie in
    the folders of `paths`, unless it is empty. `sql` names the functions and tables that queries
    may use in addition to their input. `jdbc` has the allowed URL prefixes: parameters of a URL
    could make a driver run programs.
    """

    data_dir: str = ""
    paths: tuple[str, ...] = ()
    sql: frozenset[str] = frozenset()
    jdbc: tuple[str, ...] = ()

    def flaw_in_path(self, path: str) -> str | None:
        """Return why a path, with links resolved, is not allowed; None if it is."""
        try:
            real = Path(os.path.realpath(path))
            own = Path(os.path.realpath(self.data_dir)) if self.data_dir else None
            allowed = [Path(os.path.realpath(each)) for each in self.paths]
        except (OSError, ValueError) as error:
            return f"{path!r} is no path: {error}"
        if own and _is_within(real, own):
            return f"{path} lies in the node's own folder {self.data_dir}"
        if own and _is_within(own, real):
            return f"{path} holds the node's own folder {self.data_dir}"
        if allowed and not any(_is_within(real, each) for each in allowed):
            shown = f"{path} (that is {real})" if str(real) != path else path
            return f"{shown} is in none of the folders of {_SETTING}: {', '.join(self.paths)}"
        return None

    def flaw_in_jdbc(self, url: str) -> str | None:
        """Return why a JDBC URL is not allowed; None if it is."""
        begun = [each for each in self.jdbc if url.startswith(each)]
        if any(_is_database(each, url.removeprefix(each)) for each in begun):
            return None
        if begun:
            return f"it has more behind {_JDBC}={','.join(self.jdbc)} than a database's name"
        allowed = f"is {','.join(self.jdbc)}" if self.jdbc else "is empty"
        return f"the node's {_JDBC} {allowed}: its operator has to allow the beginning of this URL"


NO_LIMITS: Final = AccessLimits()


class _CreationLock:
    """The lock of one shared object's creation; a class, so that weak references to it work."""

    def __init__(self) -> None:
        self.lock = Lock()


class Shared:
    """Objects that the tasks of one worker share; the last user's release frees an object."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._creation_locks: WeakValueDictionary[Hashable, _CreationLock] = WeakValueDictionary()
        self._held: WeakValueDictionary[Hashable, object] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the object under a key, created by `make` if there is none.

        A creation blocks only callers with the same key.
        """
        with self._lock:
            creation = self._creation_locks.setdefault(key, _CreationLock())
        with creation.lock:
            found = self._held.get(key)
            if found is None:
                found = self._held[key] = make()
            return cast("T", found)


SparkJob = Callable[["SparkSession"], Any]
"""A query that a source runs on Spark while it plans a batch."""


def _no_spark(job: SparkJob) -> Any:  # noqa: ANN401  # what a job returns
    raise RuntimeError(f"{job} was to run on Spark, where there is none")


@dataclass(frozen=True, slots=True)
class Context:
    """The services of a worker for one connector or one task."""

    resource: Resource
    warn: Callable[[str], None]
    """Writes a warning to the worker's log and to the status."""
    split: Sequence[Mapping[str, str]] = ()
    """The connector's task configs in force; return them unchanged where possible, since each
    change restarts tasks."""
    reach: AccessLimits = NO_LIMITS
    """The node's limits for connectors."""
    cluster_id: str = ""
    """The cluster's id, for marks in external systems."""
    hide: Callable[[str], str] = str
    """Masks in a text the values that `${...}` references of configs resolved to."""
    shared: Shared = field(default_factory=Shared)
    logged_offsets: Callable[[], Mapping[str, Document]] = dict
    """Reads the offsets of all tasks of the connector from the log, keyed by partition identity; a
    task must not catch its errors."""
    published_offsets: Callable[[], Mapping[str, Document]] = dict
    """As `logged_offsets`, but only up to the batches that are known to be published."""
    wake: Callable[[], None] = lambda: None
    """Tells an idle task, from any thread, that its source may have new input."""
    may_use_file_names: bool = True
    """Whether a transform may use the name of a row's file."""
    by_arrow: bool = True
    """Whether Arrow may read what is proved to be read alike by Spark; not for transforms."""
    spark_settings: Mapping[str, str] | None = None
    """The settings of Spark that differ from its defaults; None: only its server knows them."""
    on_spark: Callable[[SparkJob], Any] = _no_spark
    """Runs a Spark job of the source, apart from `Source.read`, on the task's engine."""
    deferred: dict[str, object] = field(default_factory=dict[str, object])
    """State that a source keeps from one attempt of its task to the next."""

    @property
    def put_off(self) -> dict[str, object]:
        """`deferred` under its former name."""
        return self.deferred

    def check_path(self, key: str, path: str) -> None:
        """Raise `ConfigInvalid` with the config key if the node does not allow a path."""
        if flaw := self.reach.flaw_in_path(path):
            raise ConfigInvalid(f"{key}: {flaw}")


@dataclass(frozen=True, slots=True)
class ExternalAccess:
    """The access of `probe` to external systems, from the node that validates a config.

    `queries` lets Spark analyse SQL; None: there is no Spark.
    """

    reach: AccessLimits = NO_LIMITS
    queries: "QueryCheck | None" = None


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of a source's rows, as far as they are known before the first batch."""

    ddl: str = ""
    """The columns as in `CREATE TABLE`; empty: unknown."""
    key: str = "source.type"
    """The key to change if the columns are refused."""
    is_given: bool = False
    """Whether the user gave them."""
    is_sample: bool = False
    """Whether they come from a sample of the source, so that other rows may have other types."""
    may_grow: bool = False
    """Whether the source may have more columns."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe of external systems: errors by the key to change, and warnings."""

    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()
    columns: SourceColumns = SourceColumns()
    """The columns of a source; unused for a sink."""

    def plus(self, other: "ProbeResult") -> "ProbeResult":
        """Return the errors and warnings of both, and the columns of this one."""
        errors = {**self.errors, **other.errors}
        return ProbeResult(errors, (*self.warnings, *other.warnings), self.columns)


def _is_database(begin: str, rest: str) -> bool:
    """Tell whether the rest of a URL is a database's name, and goes on where its beginning ends.

    Else `jdbc:x://db` would allow `jdbc:x://db.example.org/`, and `..` another file.
    """
    is_apart = not rest or begin.endswith(_ENDS) or rest.startswith("/")
    parts = (rest if begin.endswith("/") else rest.removeprefix("/")).split("/")
    is_plain = ".." not in parts and "" not in parts[:-1]
    return is_apart and is_plain and _DATABASE.fullmatch(rest) is not None


def _is_within(inner: Path, outer: Path) -> bool:
    """Tell whether a folder is, or lies in, another one; compares inodes, for bind mounts."""
    if inner.is_relative_to(outer):
        return True
    number = next(_numbers([outer]), None)
    return number is not None and number in _numbers([inner, *inner.parents])


def _numbers(paths: list[Path]) -> Iterator[tuple[int, int]]:
    for path in paths:
        with suppress(OSError):
            found = path.stat()
            yield found.st_dev, found.st_ino
