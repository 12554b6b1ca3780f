"""What a pipeline would find: its folders, the columns of its rows, what Spark says of its SQL.

A finding that time may mend (files that are still to come, a folder that is mounted later) is a
warning; one that would fail in any case is an error. Nothing is changed but for a file that is made
in the sink's folder, and removed at once: no other way tells whether it can be written to.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from pyspark.sql.types import StructType

from .....events.model import Resource
from ...spark.query_check import CheckFailed, Columns, QueryRefused
from ...spark.query_rules import flaws, suspects, told_function
from ...transforms.catalogue import aliases, find_transform, make_transform
from ...transforms.expect import Expectations
from ...transforms.lookups import lookup_names
from ...transforms.record_transform import RecordTransform
from ...transforms.sql import LONGEST_QUERY, Sql, without_tables
from ..common_keys import TRANSFORMS
from ..config import ConfigInvalid, is_deferred, under
from ..context import Context, Findings, Outside
from ..files import keys as files
from ..files.inference import TwinColumns, refuse_twins
from ..files.listing import walk
from ..spi import BadInput, NotReady

MOST_FILES, MOST_BYTES = 100, 4 << 20
"""How much of a folder is looked at; what was not seen is given the benefit of the doubt."""

Infer = Callable[[Mapping[str, str], Sequence[str]], str]
"""Returns the schema of some files, by their paths below the source's folder."""

_UNKNOWN_COLUMN = "[UNRESOLVED_COLUMN"
_NOBODY: Final = Resource("")
"""Stands for the connector, which is not there yet."""


def check_outside(config: Mapping[str, str], outside: Outside, infer: Infer) -> Findings:
    """Find what keeps a config from working; its values themselves are sound."""
    check = _Check(config, outside, infer)
    check.source()
    check.sink()
    check.queries()
    return Findings(check.errors, tuple(check.warnings))


@dataclass(slots=True)
class _Check:
    config: Mapping[str, str]
    outside: Outside
    infer: Infer
    errors: dict[str, str] = field(default_factory=dict[str, str])
    warnings: list[str] = field(default_factory=list[str])
    is_sample: bool = False
    """Whether there is more in the source than the schema was made of."""
    schema: str = ""
    """The columns of the source as DDL, empty if nobody can tell yet."""

    def source(self) -> None:
        """Look at the folder that is read."""
        path = self._path(files.SOURCE_PATH)
        if path is None:
            return
        if not path.exists():
            self.warnings.append(
                f"{files.SOURCE_PATH}: {path} does not exist: the connector waits for it"
            )
        elif not path.is_dir():
            self.errors[files.SOURCE_PATH] = f"{path} is a file: give the folder that it lies in"
        elif not os.access(path, os.R_OK | os.X_OK):
            self.errors[files.SOURCE_PATH] = f"{path} cannot be read by this node's user"
        else:
            self.schema = self.config.get(files.SOURCE_SCHEMA, "") or self._inferred()

    def sink(self) -> None:
        """Look whether the folder that is written to can be made and written to."""
        path = self._path(files.SINK_PATH)
        if path is None:
            return
        source = self.config.get(files.SOURCE_PATH, "")
        if not is_deferred(source) and _leads_into(path, Path(source)):
            found = f"{path} leads into {source}"
            self.errors[files.SINK_PATH] = f"{found}: its output would be its input"
            return
        there = next(each for each in (path, *path.parents) if os.path.lexists(each))
        try:
            descriptor, name = tempfile.mkstemp(prefix=".fairlead-", dir=there)
            os.close(descriptor)
            Path(name).unlink()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            self.errors[files.SINK_PATH] = f"{path} cannot be written to: {there}: {why}"

    def queries(self) -> None:
        """Ask Spark about the schema, each query, and the columns that become folders."""
        steps = aliases(self.config)
        partitions = _listed(self.config.get(files.SINK_PARTITION_BY, ""))
        if self.outside.queries is None or not (
            steps or partitions or self.config.get(files.SOURCE_SCHEMA)
        ):
            return
        try:
            columns = self._columns()
            for alias in steps:
                columns = self._step(alias, columns)
        except CheckFailed as error:
            self.warnings.append(f"the SQL was not checked: {error}")
            return
        if columns is not None and partitions:
            self._partitions(partitions, columns)

    def _columns(self) -> Columns | None:
        """Return the columns of the source, None if nobody can tell yet."""
        schema = self.config.get(files.SOURCE_SCHEMA, "") or self.schema
        if not schema or is_deferred(schema) or self.outside.queries is None:
            return None
        try:
            columns = self.outside.queries.columns_of(schema)
            refuse_twins(list(columns.types))
        except (QueryRefused, TwinColumns) as refused:
            self.errors[files.SOURCE_SCHEMA] = str(refused)
            return None
        return columns

    def _inferred(self) -> str:
        source = (value for key, value in self.config.items() if key.startswith("source."))
        if files.SOURCE_PATH in self.errors or any(is_deferred(value) for value in source):
            return ""
        config = {**self.config, files.SOURCE_SAMPLE_BYTES: str(MOST_BYTES)}
        glob = self.config.get(files.SOURCE_GLOB, "*")
        try:
            found = list(islice(walk(Path(self.config[files.SOURCE_PATH]), glob), MOST_FILES + 1))
            size = sum(each.size for each in found)
            self.is_sample = len(found) > MOST_FILES or size > MOST_BYTES
            return self.infer(config, sorted(each.path for each in found[:MOST_FILES]))
        except NotReady:
            return ""
        except TwinColumns as error:
            self.errors[files.SOURCE_PATH] = str(error)
            return ""
        except (BadInput, ConfigInvalid, OSError) as error:
            self.warnings.append(f"{files.SOURCE_PATH}: {error}")
            return ""

    def _step(self, alias: str, columns: Columns | None) -> Columns | None:
        """Ask about one transform; return the columns that it makes, None if nobody can tell."""
        prefix = f"{TRANSFORMS}.{alias}."
        bare = under(prefix, self.config)
        if is_deferred(bare["type"]):
            return None
        kind = find_transform(bare["type"])
        if issubclass(kind, Expectations):
            for key, query in kind.queries_of(bare).items():
                self._query(f"{prefix}{key}", query, columns)
            return columns
        if issubclass(kind, Sql):
            names = lookup_names(bare)
            self._lookups(f"{prefix}lookup.{name}.path" for name in names)
            return self._query(f"{prefix}{kind.sql_key}", kind.query_of(bare), columns, names)
        if issubclass(kind, RecordTransform):
            return self._records(alias, f"{prefix}type", columns)
        return None

    def _lookups(self, keys: Iterable[str]) -> None:
        for key in keys:
            path = self._path(key)
            if path is not None and not path.exists():
                self.warnings.append(f"{key}: {path} does not exist")

    def _records(self, alias: str, key: str, columns: Columns | None) -> Columns | None:
        """Ask about a transform of records, whose columns are known without a question."""
        spark = self.outside.queries
        bare = under(f"{TRANSFORMS}.{alias}.", self.config)
        if columns is None or spark is None or any(map(is_deferred, bare.values())):
            return None
        context = Context(_NOBODY, self.warnings.append, reach=self.outside.reach)
        try:
            transform = make_transform(alias, self.config, context)
            if isinstance(transform, RecordTransform) and columns.json:
                made = transform.made_of(StructType.fromJson(json.loads(columns.json)))
                return spark.analyse(made.query, columns).columns
        except ConfigInvalid as error:
            self._refused(key, str(error), is_column=True)
        except QueryRefused as refused:
            self._refused(key, str(refused))
        return None

    def _query(
        self, key: str, query: str, columns: Columns | None, tables: Sequence[str] = ()
    ) -> Columns | None:
        """Ask about one query; return its columns, None if nobody can tell."""
        spark = self.outside.queries
        if is_deferred(query) or spark is None:
            return None
        if len(query) > LONGEST_QUERY:
            self.errors[key] = f"a query has at most {LONGEST_QUERY} letters"
            return None
        allowed = self.outside.reach.sql
        try:
            use = without_tables(spark.use_of(query), tables)
            builtin = spark.builtin()
            if wrong := flaws(use, builtin, allowed):
                self.errors[key] = "; ".join(wrong)
            is_own = use.relations or {each.removesuffix("()") for each in use.functions} - builtin
            if wrong or is_own or use.other or tables or columns is None:
                return None
            made = spark.analyse(query, columns)
        except QueryRefused as refused:
            self._refused(key, str(refused))
            return None
        if made.has_current and (words := suspects(use, list(columns.types), allowed)):
            self.errors[key] = "; ".join(map(told_function, words))
        return made.columns

    def _refused(self, key: str, text: str, *, is_column: bool = False) -> None:
        is_json = self.config.get(files.SOURCE_FORMAT) == "json"
        is_column = is_column or text.startswith(_UNKNOWN_COLUMN)
        if self.is_sample and (is_json or not is_column) and "SYNTAX" not in text:
            self.warnings.append(f"{key}: by a sample of the files, {text}")
        else:
            self.errors[key] = text

    def _partitions(self, partitions: Sequence[str], columns: Columns) -> None:
        """Look for the columns that become folders among those that are written."""
        known = {name.lower(): name for name in columns.types}
        missing = [name for name in partitions if name.lower() not in known]
        if missing:
            there = ", ".join(known.values())
            told = f"there is no column {', '.join(missing)}; there are {there}"
            if self.is_sample and self.config.get(files.SOURCE_FORMAT) == "json":
                self.warnings.append(f"{files.SINK_PARTITION_BY}: by a sample of the files, {told}")
            else:
                self.errors[files.SINK_PARTITION_BY] = told
        elif len({name.lower() for name in partitions}) == len(known):
            self.errors[files.SINK_PARTITION_BY] = (
                "no column would be left for the files themselves"
            )

    def _path(self, key: str) -> Path | None:
        """Return a folder that may be looked at, if it is one of those."""
        path = self.config.get(key, "")
        if is_deferred(path):
            return None
        if flaw := self.outside.reach.flaw_in_path(path):
            self.errors[key] = flaw
            return None
        return Path(path)


def _leads_into(inner: Path, outer: Path) -> bool:
    """Tell whether a folder is another or lies in it, wherever links lead to."""
    return Path(os.path.realpath(inner)).is_relative_to(os.path.realpath(outer))


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
