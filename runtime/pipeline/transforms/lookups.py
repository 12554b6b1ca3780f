# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Lookup tables for queries: small tables from files, read again when they change.

A table is a file or a folder, cached in the worker. Before each batch its files are checked by a
directory walk, and if one is new, gone or changed the table is read again. A batch sees a
consistent state of each table.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....actors.settings import not_blank
from ..batches.frames import frame_of, rows_of
from ..engines.failures import failure_text
from ..engines.queries.query import INPUT
from ..engines.spelling import path_to_read, path_to_write
from ..spi.config import ConfigInvalid, Importance, ParsedConfig
from ..spi.context import NO_LIMITS, AccessLimits, Context
from ..spi.errors import BadInput, SourceAway
from ..spi.keys.kinds import choice_key, text_key
from ..untrusted.plain_file import flaw_in_kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_BYTES: Final = 64 << 20
"""The largest total size of a table's files, since each worker caches it."""
_MOST_READS: Final = 3
"""How often to read a table that changes during the read."""
_FORMATS: Final = ("csv", "json", "orc", "parquet")
_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    # RFC 4180, as a source reads it: Spark's own escape is a backslash.
    "csv": {"header": "true", "inferSchema": "true", "escape": '"', "multiLine": "true"},
}
_KEY: Final = re.compile(r"lookup\.(.+)\.path", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)

LOOKUP_KEYS: Final = (
    text_key(
        "lookup.<name>.path",
        "A file, or a folder of files, that the query knows as a table of this name. It is read "
        f"again when it changes, and holds at most {MOST_BYTES >> 20} MB.",
        importance=Importance.LOW,
        required=True,
        validator=not_blank,
    ),
    choice_key(
        "lookup.<name>.format",
        f"The format of those files: {', '.join(_FORMATS)}. Texts have a line of names first.",
        *_FORMATS,
        importance=Importance.LOW,
        required=True,
    ),
)

Fingerprint = tuple[tuple[str, int, int], ...]
"""The files of a table with their sizes and modification times in nanoseconds."""


class Lookup:
    """A cached lookup table."""

    def __init__(self, name: str, path: str, form: str, reach: AccessLimits = NO_LIMITS) -> None:
        self._name, self._path, self._format = name, Path(path), form
        self._reach = reach
        self._held: tuple[Fingerprint, DataFrame] | None = None
        """The cached table, with the fingerprint of its files."""

    def table(self, spark: "SparkSession") -> "DataFrame":
        """Return the present table; raises `BadInput` if it is unusable, else `SourceAway`."""
        fingerprint = self._fingerprint()
        for _ in range(_MOST_READS):
            if self._holds(fingerprint, spark):
                break
            table = self._read(spark, fingerprint)
            before, fingerprint = fingerprint, self._fingerprint()
            if before == fingerprint:
                self._held = fingerprint, table
        if self._held is None or self._held[0] != fingerprint:
            raise SourceAway(f"the lookup {self._name} changes while it is read: {self._path}")
        return self._held[1]

    def _holds(self, fingerprint: Fingerprint, spark: "SparkSession") -> bool:
        """Return whether the cached table is up to date, and of this session."""
        held = self._held
        return held is not None and held[0] == fingerprint and held[1].sparkSession is spark

    def _read(self, spark: "SparkSession", fingerprint: Fingerprint) -> "DataFrame":
        reader = spark.read.format(self._format).options(**_OPTIONS.get(self._format, {}))
        reader = reader.option("mode", "FAILFAST")  # else bad rows would have nulls
        if self._path.is_dir():  # whose folders may be named as partitions are
            reader = reader.option("basePath", path_to_write(self._path))
        # By name: what Spark finds by itself may have come since, or be hidden from us only.
        files = [path_to_read(Path(each)) for each, _, _ in fingerprint]
        if not files:
            raise _unusable(f"the lookup {self._name} has no files: {self._path}")
        try:
            return frame_of(spark, rows_of(reader.load(files)))
        except Exception as error:
            reason = (failure_text(error) or str(error)).partition("\n")[0]
            raise _unusable(f"the lookup {self._name} cannot be read: {reason}") from error

    def _fingerprint(self) -> Fingerprint:
        """Return the present fingerprint, without hidden files."""
        path, what = self._path, f"the lookup {self._name}"
        if flaw := self._reach.flaw_in_path(str(path)):  # it may lead elsewhere by now
            raise SourceAway(f"{what} cannot be read: {flaw}")
        try:
            paths = sorted(path.rglob("*")) if path.is_dir() else [path]
            read = [each for each in paths if not _is_hidden(each.relative_to(path))]
            stats = [(each, each.stat() if each == path else each.lstat()) for each in read]
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SourceAway(f"{what} cannot be read: {path}: {reason}") from error
        for each, status in stats:
            if flaw := _flaw_in_kind(status, is_confined=bool(self._reach.paths)):
                raise _unusable(f"{what} cannot be read: {each} {flaw}")
        files = [(each, status) for each, status in stats if stat.S_ISREG(status.st_mode)]
        if sum(status.st_size for _, status in files) > MOST_BYTES:
            reason = f"{path} holds more than {MOST_BYTES >> 20} MB"
            raise _unusable(f"{what} is no small table: {reason}")
        return tuple((str(each), status.st_size, status.st_mtime_ns) for each, status in files)


def _flaw_in_kind(status: os.stat_result, *, is_confined: bool) -> str:
    """Return why something in a table's folder is not read; empty if it is.

    Spark reads the files, so they are only looked at here. With links, anyone who may write to the
    folder could make the node read any file.
    """
    if stat.S_ISLNK(status.st_mode):
        return "is a link, which is not followed: copy what it leads to"
    if stat.S_ISDIR(status.st_mode):
        return ""
    if flaw := flaw_in_kind(status.st_mode):
        return flaw
    if is_confined and status.st_nlink > 1:
        return "has another name, which may lie elsewhere: copy it"
    return ""


def _unusable(text: str) -> BadInput:
    """Return an error of a table that a person has to fix; no row of the batch is to blame."""
    error = BadInput(text)
    error.is_deferred = True
    return error


def _is_hidden(path: Path) -> bool:
    """Return whether Spark ignores a relative path, so that it is no file of the table.

    Names such as `_x=1` are those of partitions.
    """
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.parts
    )


def lookup_names(keys: Mapping[str, object]) -> list[str]:
    """Return the names of the lookup tables in a transform's keys."""
    return [match[1] for key in keys if (match := _KEY.fullmatch(key))]


def flaw_in_name(name: str) -> str:
    """Return why a name is not allowed for a table; empty if it is."""
    if name.lower() == INPUT:
        return f"{INPUT} is the batch: give the table another name"
    return "" if _NAME.fullmatch(name) else f"{name} is no plain name of letters, digits and _"


def lookups_of(settings: ParsedConfig, context: Context) -> Mapping[str, Lookup]:
    """Return the lookup tables of a config; raises `ConfigInvalid` for paths not allowed."""
    lookups: dict[str, Lookup] = {}
    for name in lookup_names(settings.values):
        key = f"lookup.{name}.path"
        path = settings.text(key)
        if flaw := flaw_in_name(name):
            raise ConfigInvalid(f"{key}: {flaw}")
        context.check_path(key, path)
        lookups[name] = Lookup(name, path, settings.text(f"lookup.{name}.format"), context.reach)
    return lookups
