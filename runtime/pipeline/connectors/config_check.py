"""Check of a `SparkPipeline` config against source, sink, dead letter queue and Spark's analyser.

A problem that may pass by itself (no files yet, a folder that is not mounted yet) is a warning;
other problems are errors.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql.types import StructType

from ....events.model import Resource
from ..engines.queries.query_check import CheckFailed, Columns, QueryCheck, QueryRefused
from ..engines.queries.query_rules import flaws, suspects, told_function
from ..formats.evolution.names import find_duplicates, flaw_of_duplicates, may_have_duplicates
from ..formats.inference import DuplicateColumns, refuse_duplicates
from ..spi.config import ConfigInvalid, has_reference, strip_prefix
from ..spi.context import AccessLimits, Context, ExternalAccess, ProbeResult, SourceColumns
from ..spi.keys.common import TRANSFORMS
from ..spi.types import WrittenColumns
from ..transforms.catalogue import aliases, make_transform
from ..transforms.connect.record_transform import RecordTransform
from ..transforms.dedupe import Dedupe
from ..transforms.expect import Expectations
from ..transforms.lookups import lookup_names
from ..transforms.sql import LONGEST_QUERY, Sql, without_tables
from ..transforms.types import find_transform
from . import pipeline_keys as keys
from .dead_letter_queue import probe_queue

_NO_CONNECTOR: Final = Resource("")
"""A placeholder for the connector, which does not exist yet."""
_UNKNOWN_COLUMN = "[UNRESOLVED_COLUMN"


def probe(
    config: Mapping[str, str], outside: ExternalAccess, types: keys.PipelineTypes
) -> ProbeResult:
    """Check a config, whose values are valid each, against source, sink and Spark."""
    source, sink = types.source.probe(config, outside), types.sink.probe(config, outside)
    errors = {**source.errors, **sink.errors, **probe_queue(config, outside)}
    warnings = [*source.warnings, *sink.warnings]
    settings = strip_prefix(keys.SPARK_CONF, config)
    settings = {name: value for name, value in settings.items() if not has_reference(value)}
    if outside.queries is not None and settings:
        try:
            flaws_found = outside.queries.flaws_in_settings(settings)
            errors |= {f"{keys.SPARK_CONF}{name}": flaw for name, flaw in flaws_found.items()}
        except CheckFailed as error:
            warnings.append(f"the settings of Spark were not checked: {error}")
    steps, is_wanted = aliases(config), types.sink.wants_columns(config)
    may_fail = types.sink.ignores_case and may_have_duplicates(source.columns.ddl)
    needs_columns = steps or is_wanted or source.columns.is_given or may_fail
    if outside.queries is not None and needs_columns:
        queries = _Queries(config, outside.reach, outside.queries, source.columns, errors, warnings)
        try:
            columns = queries.columns(steps)
        except CheckFailed as error:
            warnings.append(f"the SQL was not checked: {error}")
            columns = None
        if columns is not None and types.sink.ignores_case:
            errors |= _duplicates(columns)
        if columns is not None and is_wanted:
            names = WrittenColumns(list(columns.types), may_grow=source.columns.may_grow)
            fits = types.sink.check_columns(config, names)
            errors.update(fits.errors)
            warnings += fits.warnings
    return ProbeResult(errors, tuple(warnings))


def _duplicates(columns: Columns) -> Mapping[str, str]:
    """Return the error of columns that a sink cannot tell apart, if there are any."""
    schema = StructType.fromJson(json.loads(columns.json)) if columns.json else StructType()
    duplicates = find_duplicates(schema)
    return {TRANSFORMS: flaw_of_duplicates(duplicates)} if duplicates else {}


@dataclass(slots=True)
class _Queries:
    """Analyses the chain of transforms: the columns of each step are the input of the next."""

    config: Mapping[str, str]
    reach: AccessLimits
    spark: QueryCheck
    source: SourceColumns
    errors: dict[str, str]
    warnings: list[str]

    def columns(self, steps: Sequence[str]) -> Columns | None:
        """Return the columns after the last transform; None: unknown. Raises `CheckFailed`."""
        columns = self._of_source()
        for alias in steps:
            columns = self._step(alias, columns)
        return columns

    def _of_source(self) -> Columns | None:
        source = self.source
        if not source.ddl or has_reference(source.ddl):
            return None
        try:
            columns = self.spark.columns_of(source.ddl)
            refuse_duplicates(list(columns.types))
        except (QueryRefused, DuplicateColumns) as refused:
            self.errors[source.key] = str(refused)
            return None
        return columns

    def _step(self, alias: str, columns: Columns | None) -> Columns | None:
        """Check one transform; return the columns after it, None if unknown."""
        prefix = f"{TRANSFORMS}.{alias}."
        bare = strip_prefix(prefix, self.config)
        if has_reference(bare["type"]):
            return None
        kind = find_transform(bare["type"])
        if issubclass(kind, Expectations | Dedupe):
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
            text = self.config.get(key, "")
            if has_reference(text):
                continue
            if flaw := self.reach.flaw_in_path(text):
                self.errors[key] = flaw
            elif not Path(text).exists():
                self.warnings.append(f"{key}: {text} does not exist")

    def _records(self, alias: str, key: str, columns: Columns | None) -> Columns | None:
        """Check one of Connect's transforms, which needs the exact columns of its input."""
        bare = strip_prefix(f"{TRANSFORMS}.{alias}.", self.config)
        if columns is None or any(map(has_reference, bare.values())):
            return None
        context = Context(_NO_CONNECTOR, self.warnings.append, reach=self.reach)
        try:
            transform = make_transform(alias, self.config, context)
            if isinstance(transform, RecordTransform) and columns.json:
                edited = transform.made_of(StructType.fromJson(json.loads(columns.json)))
                return self.spark.analyse(edited.query, columns).columns
        except ConfigInvalid as error:
            self._refused(key, str(error), is_column=True)
        except QueryRefused as refused:
            self._refused(key, str(refused))
        return None

    def _query(
        self, key: str, query: str, columns: Columns | None, tables: Sequence[str] = ()
    ) -> Columns | None:
        """Check one query; return its columns, None if unknown."""
        if has_reference(query):
            return None
        if len(query) > LONGEST_QUERY:
            self.errors[key] = f"a query may have at most {LONGEST_QUERY} characters"
            return None
        allowed = self.reach.sql
        try:
            use = without_tables(self.spark.use_of(query), tables)
            builtin = self.spark.builtin()
            if wrong := flaws(use, builtin, allowed):
                self.errors[key] = "; ".join(wrong)
            is_own = use.relations or {each.removesuffix("()") for each in use.functions} - builtin
            if wrong or is_own or use.other or tables or columns is None:
                return None
            analysed = self.spark.analyse(query, columns)
        except QueryRefused as refused:
            self._refused(key, str(refused))
            return None
        if analysed.has_current and (words := suspects(use, list(columns.types), allowed)):
            self.errors[key] = "; ".join(map(told_function, words))
        return analysed.columns

    def _refused(self, key: str, text: str, *, is_column: bool = False) -> None:
        source, is_column = self.source, is_column or text.startswith(_UNKNOWN_COLUMN)
        if source.is_sample and (source.may_grow or not is_column) and "SYNTAX" not in text:
            self.warnings.append(f"{key}: by a sample of the files, {text}")
        else:
            self.errors[key] = text
