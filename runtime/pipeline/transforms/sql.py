# pyright: basic, reportCallIssue=false, reportOptionalCall=false, reportArgumentType=false
"""The transforms `sql` and `select`: a query, or a select list, over the batch."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.errors import AnalysisException, ParseException

from ..engines.queries.query import INPUT, QueryUse
from ..engines.queries.query_check import QueryRefused
from ..engines.queries.query_rules import flaws, suspects, told_function
from ..engines.queries.session_check import SessionCheck, check_of
from ..spi.config import ConfigDef, ConfigInvalid, Importance, ParsedConfig, Width
from ..spi.context import Context
from ..spi.keys.kinds import text_key
from ..spi.transform import Transform
from .connect.record_transform import BUILT_IN
from .lookups import LOOKUP_KEYS, Lookup, lookups_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LONGEST_QUERY: Final = 100_000
"""The most characters of a query, since each word is checked."""

_OF_FILES: Final = ("input_file", "_metadata")
"""The beginnings of words that may use the file of a row."""
_PLACE: Final = re.compile(r"\(line (\d+), pos (\d+)\)")
_CONDITION: Final = re.compile(r"\[([A-Z_.]+)\]")
"""Matches the error class at the beginning of Spark's message."""


class CheckedQuery:
    """A query over the table `input`, the batch.

    It also sees the lookup tables. All else that it uses is checked before it runs
    (`AccessLimits.sql`). Errors never quote a query with a secret, since a quote in the secret may
    have split it into words.
    """

    def __init__(self, query: str, context: Context) -> None:
        self._query = query.strip().rstrip(";")
        self._allowed = context.reach.sql
        self._holds_secret = context.hide(query) != query
        self._use: QueryUse | None = None
        """The result of the check; it is the same for each batch."""

    def over(
        self, frame: "DataFrame", tables: Mapping[str, "DataFrame"] | None = None
    ) -> "DataFrame":
        """Return the query's rows for a batch; raises `ConfigInvalid`."""
        try:
            return self._made_of(frame, tables or {})
        except (AnalysisException, ConfigInvalid, QueryRefused) as error:
            if self._holds_secret:
                raise ConfigInvalid(_refusal(error)) from None
            if isinstance(error, QueryRefused):
                raise ConfigInvalid(str(error)) from None
            raise

    def _made_of(self, frame: "DataFrame", tables: Mapping[str, "DataFrame"]) -> "DataFrame":
        spark = frame.sparkSession
        check = check_of(spark)
        self._use = self._use or self._checked(check, tables)
        # All tasks share a session and its views: PySpark generates unique view names for each
        # batch, and common table expressions map them to the names in the query.
        inputs = {INPUT: frame, **tables}
        views = {f"t{number}": table for number, table in enumerate(inputs.values())}
        named = ", ".join(
            f"{name} AS (TABLE {{{view}}})" for name, view in zip(inputs, views, strict=True)
        )
        query = self._query.replace("{", "{{").replace("}", "}}")
        result = spark.sql(f"WITH {named} SELECT * FROM (\n{query}\n)", None, **views)  # noqa: S608
        words = suspects(self._use, frame.columns, self._allowed)
        if words and check.has_current(result, self._query, inputs):
            raise ConfigInvalid("; ".join(map(told_function, words)))
        return result

    def _checked(self, check: SessionCheck, tables: Iterable[str]) -> QueryUse:
        """Return what the query uses, if it is allowed; raises `ConfigInvalid`."""
        if len(self._query) > LONGEST_QUERY:
            raise ConfigInvalid(f"a query has at most {LONGEST_QUERY} letters")
        use = without_tables(check.use_of(self._query), tables)
        wrong = flaws(use, check.builtin(), self._allowed)
        if wrong:
            raise ConfigInvalid("; ".join(wrong))
        return use


class Sql(Transform):
    """A query over the batch and lookup tables."""

    version: ClassVar[str] = BUILT_IN

    sql_key: ClassVar[str] = "query"
    """The key with the SQL."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the query, and the lookup tables."""
        query = text_key(
            "query",
            "For `sql`: a query over the table `input`, which is one batch and never more.",
            importance=Importance.HIGH,
            width=Width.LONG,
        )
        return ConfigDef((query,), families=LOOKUP_KEYS)

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Require the SQL."""
        if settings.text(cls.sql_key).strip():
            return {}
        return {cls.sql_key: f"a {settings.text('type')} transform needs it"}

    @classmethod
    def query_of(cls, settings: Mapping[str, str]) -> str:
        """Return the query of a transform's keys."""
        return settings[cls.sql_key].strip().rstrip(";")

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        """Store the query and the tables; raises `ConfigInvalid` for paths not allowed."""
        super().__init__(settings, context)
        query = self.query_of({self.sql_key: settings.text(self.sql_key)})
        self.may_use_file_names = any(each in query.lower() for each in _OF_FILES)
        self._query = CheckedQuery(query, context)
        self._lookups: Mapping[str, Lookup] = lookups_of(settings, context)

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Return the query's rows for a batch."""
        spark = frame.sparkSession
        tables = {name: each.table(spark) for name, each in self._lookups.items()}
        return self._query.over(frame, tables)


class Select(Sql):
    """A select list over the batch."""

    sql_key: ClassVar[str] = "columns"

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the list."""
        columns = text_key(
            "columns",
            "For `select`: columns and expressions, `carrier, dep_delay / 60 AS hours`.",
            importance=Importance.HIGH,
            width=Width.LONG,
        )
        return ConfigDef((columns,))

    @classmethod
    def query_of(cls, settings: Mapping[str, str]) -> str:
        """Return the query of a select list such as `carrier, dep_delay / 60 AS h`."""
        return f"SELECT {settings[cls.sql_key]} FROM input"  # noqa: S608  # the user's own SQL


def without_tables(use: QueryUse, tables: Iterable[str]) -> QueryUse:
    """Return what a query uses, without its input and lookup tables."""
    return replace(use, relations=use.relations - {name.lower() for name in tables})


def _refusal(error: AnalysisException | ConfigInvalid | QueryRefused) -> str:
    """Return why a query is refused, without quoting it."""
    note = "its words are not told, since it holds a secret"
    if isinstance(error, ConfigInvalid):
        return f"the query uses what the SQL of a transform may not; {note}"
    is_parsed = isinstance(error, ParseException | QueryRefused)
    place = _PLACE.search(str(error)) if is_parsed else None
    where = f" at line {place[1]}, position {place[2]}" if place else ""
    condition = error.getCondition() if isinstance(error, AnalysisException) else None
    if found := _CONDITION.match(str(error)) if isinstance(error, QueryRefused) else None:
        condition = found[1]
    named = f" ({condition})" if condition else ""
    return f"Spark refuses the query{where}{named}; {note}"
