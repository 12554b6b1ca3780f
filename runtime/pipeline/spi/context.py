"""What a connector is given of the node that it runs on, or that its config is for.

The operator says what connectors may reach there: folders, and what SQL may use.
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

    from ..spark.queries.query_check import QueryCheck

T = TypeVar("T")

_SETTING: Final = "paths.allow"
_JDBC: Final = "jdbc.allow"
_DATABASE: Final = re.compile(r"[\w/.-]*")
"""What may follow the beginning of a URL: no parameters."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The limits of one node; as it is made without anything, it has none.

    `data_dir` is the node's own folder, which no connector reads or writes. Sources and sinks
    lie in `paths`, if there are any; `sql` is what queries may use beside their input. `jdbc` has
    the beginnings of the URLs that drivers may be given: they can have a driver run programs.
    """

    data_dir: str = ""
    paths: tuple[str, ...] = ()
    sql: frozenset[str] = frozenset()
    jdbc: tuple[str, ...] = ()

    def flaw_in_path(self, path: str) -> str | None:
        """Return why a folder is out of reach, wherever its links lead to; None if it is not."""
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
        """Return why no driver may be given a URL; None if one may."""
        after = [url.removeprefix(each) for each in self.jdbc if url.startswith(each)]
        if any(_DATABASE.fullmatch(each) for each in after):
            return None
        if after:
            return f"it has more behind {_JDBC}={','.join(self.jdbc)} than a database's name"
        allowed = f"is {','.join(self.jdbc)}" if self.jdbc else "is empty"
        return f"the node's {_JDBC} {allowed}: its operator has to allow the beginning of this URL"


NO_LIMITS: Final = Reach()


class _Making:
    """What one thread at a time may make."""

    def __init__(self) -> None:
        self.lock = Lock()


class Shared:
    """What tasks on one worker have in common, made by the first and let go with the last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._making: WeakValueDictionary[Hashable, _Making] = WeakValueDictionary()
        self._held: WeakValueDictionary[Hashable, object] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is shared under a key; it is kept as long as anybody holds it.

        Those that ask for the same wait while it is made, and nobody else does.
        """
        with self._lock:
            making = self._making.setdefault(key, _Making())
        with making.lock:
            found = self._held.get(key)
            if found is None:
                found = self._held[key] = make()
            return cast("T", found)


SparkJob = Callable[["SparkSession"], Any]
"""What a source asks Spark for before it knows what a batch will hold."""


def _no_spark(job: SparkJob) -> Any:  # noqa: ANN401  # what a job returns
    raise RuntimeError(f"{job} was to run on Spark, where there is none")


@dataclass(frozen=True, slots=True)
class Context:
    """What a connector or a task gets from the worker that runs it; `warn` is never silent.

    `split` holds the task configs that are in force, wherever the connector ran when it made
    them: what still fits is best given back as it is, since each change restarts tasks. `reach`
    is what the node's operator lets connectors reach.
    `cluster_id` is what the cluster is known by, for marks in what outlives it. `hide` takes the
    values that references in configs led to out of a text.
    `logged` returns the connector's offsets as the log has them now, those of all its tasks, by the
    identity of their partitions; `settled` those whose rows are known to be in the sink. They raise
    what a task is to pass on.
    `wake` tells a task that waits for something to read that there may be some, from any thread.
    `asks_files` tells whether a transform may ask from which file a row is.
    `on_spark` runs a job of the source's own on its task's engine; a batch's own rows are read by
    `Source.read`.
    `put_off` is a source's own: it is kept from one attempt of its task to the next.
    """

    resource: Resource
    warn: Callable[[str], None]
    split: Sequence[Mapping[str, str]] = ()
    reach: Reach = NO_LIMITS
    cluster_id: str = ""
    hide: Callable[[str], str] = str
    shared: Shared = field(default_factory=Shared)
    logged: Callable[[], Mapping[str, Document]] = dict
    settled: Callable[[], Mapping[str, Document]] = dict
    wake: Callable[[], None] = lambda: None
    asks_files: bool = True
    on_spark: Callable[[SparkJob], Any] = _no_spark
    put_off: dict[str, object] = field(default_factory=dict[str, object])

    def check_path(self, key: str, path: str) -> None:
        """Raise `ConfigInvalid` for a path that is out of reach, by the key that names it."""
        if flaw := self.reach.flaw_in_path(path):
            raise ConfigInvalid(f"{key}: {flaw}")


@dataclass(frozen=True, slots=True)
class Outside:
    """What a config is held against before it is taken: the node that it is for.

    `queries` asks Spark about SQL; None where there is no Spark.
    """

    reach: Reach = NO_LIMITS
    queries: "QueryCheck | None" = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What became of that: errors by the key to change, and what is only to be told."""

    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()


def _is_within(inner: Path, outer: Path) -> bool:
    """Tell whether a folder is another or lies in it; one that is mounted twice is one."""
    if inner.is_relative_to(outer):
        return True
    number = next(_numbers([outer]), None)
    return number is not None and number in _numbers([inner, *inner.parents])


def _numbers(paths: list[Path]) -> Iterator[tuple[int, int]]:
    for path in paths:
        with suppress(OSError):
            found = path.stat()
            yield found.st_dev, found.st_ino
