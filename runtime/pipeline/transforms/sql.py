# pyright: basic, reportCallIssue=false, reportOptionalCall=false, reportArgumentType=false
"""The transforms `sql` and `select`: a query over the batch, or its select list."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final
from uuid import uuid4

from pyspark.errors import AnalysisException, ParseException

from ..spark.queries.query import INPUT, QueryUse, builtin_functions, has_current, use_of
from ..spark.queries.query_rules import flaws, suspects, told_function
from ..spi.config import ConfigDef, ConfigInvalid, Importance, ParsedConfig, Width
from ..spi.context import Context
from ..spi.key_kinds import text_key
from ..spi.transform import Transform
from .connect.record_transform import BUILT_IN
from .lookups import LOOKUP_KEYS, Lookup, lookups_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

LONGEST_QUERY: Final = 100_000
"""Letters of the longest query that is taken: each word of one is looked at."""

_PLACE: Final = re.compile(r"\(line (\d+), pos (\d+)\)")


class CheckedQuery:
    """A query over the table `input`, which is the batch; it sees no other batch.

    Beside it the query sees tables of the names that it is given. What else it may use is looked
    at before it runs: what the node lets SQL reach. No word of a query that holds a secret is told
    when it is refused: a quote in the secret may have made words of its parts.
    """

    def __init__(self, query: str, context: Context) -> None:
        self._query = query.strip().rstrip(";")
        self._allowed = context.reach.sql
        self._holds_secret = context.hide(query) != query
        self._use: QueryUse | None = None
        """What the query uses, once it was checked; each batch would find the same."""

    def over(
        self, frame: "DataFrame", tables: Mapping[str, "DataFrame"] | None = None
    ) -> "DataFrame":
        """Describe the rows that the query makes of the batch; raises `ConfigInvalid`."""
        try:
            return self._made_of(frame, tables or {})
        except (AnalysisException, ConfigInvalid) as error:
            if not self._holds_secret:
                raise
            raise ConfigInvalid(_refusal(error)) from None

    def _made_of(self, frame: "DataFrame", tables: Mapping[str, "DataFrame"]) -> "DataFrame":
        spark = frame.sparkSession
        self._use = self._use or self._checked(spark, tables)
        # Views belong to the session, which all tasks share: each batch takes names of its
        # own, and common table expressions give them the names that the query knows.
        views = {name: f"fairlead_{uuid4().hex}" for name in (INPUT, *tables)}
        for name, table in {INPUT: frame, **tables}.items():
            table.createOrReplaceTempView(views[name])
        try:
            named = ", ".join(f"{name} AS (TABLE {view})" for name, view in views.items())
            made = spark.sql(f"WITH {named} SELECT * FROM (\n{self._query}\n)")  # noqa: S608
        finally:
            for view in views.values():
                spark.catalog.dropTempView(view)
        if words := suspects(self._use, frame.columns, self._allowed):
            plan: JavaObject = made._jdf.queryExecution().analyzed()  # noqa: SLF001
            if has_current(plan, made.sparkSession._jvm):  # noqa: SLF001
                raise ConfigInvalid("; ".join(map(told_function, words)))
        return made

    def _checked(self, spark: "SparkSession", tables: Iterable[str]) -> QueryUse:
        """Return what the query uses, if that is allowed; nothing is run before."""
        if len(self._query) > LONGEST_QUERY:
            raise ConfigInvalid(f"a query has at most {LONGEST_QUERY} letters")
        state: JavaObject = spark._jsparkSession.sessionState()  # noqa: SLF001
        use = without_tables(use_of(state.sqlParser().parsePlan(self._query)), tables)
        wrong = flaws(use, builtin_functions(spark._jvm), self._allowed)  # noqa: SLF001
        if wrong:
            raise ConfigInvalid("; ".join(wrong))
        return use


class Sql(Transform):
    """A query over the batch, and over small tables that are looked up beside it."""

    version: ClassVar[str] = BUILT_IN

    sql_key: ClassVar[str] = "query"
    """The key of the SQL."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the query, and where small tables are."""
        query = text_key(
            "query",
            "For `sql`: a query over the table `input`, which is one batch and never more.",
            importance=Importance.HIGH,
            width=Width.LONG,
        )
        return ConfigDef((query,), families=LOOKUP_KEYS)

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Ask for the SQL."""
        if settings.text(cls.sql_key).strip():
            return {}
        return {cls.sql_key: f"a {settings.text('type')} transform needs it"}

    @classmethod
    def query_of(cls, settings: Mapping[str, str]) -> str:
        """Return the query that bare keys give."""
        return settings[cls.sql_key].strip().rstrip(";")

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        """Take the query and the tables; raises `ConfigInvalid` for those out of reach."""
        super().__init__(settings, context)
        self._query = CheckedQuery(
            self.query_of({self.sql_key: settings.text(self.sql_key)}), context
        )
        self._lookups: Mapping[str, Lookup] = lookups_of(settings, context)

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Describe the rows that the query makes of the batch."""
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
        """Return the query that keeps a select list's columns: `carrier, dep_delay / 60 AS h`."""
        return f"SELECT {settings[cls.sql_key]} FROM input"  # noqa: S608  # the user's own SQL


def without_tables(use: QueryUse, tables: Iterable[str]) -> QueryUse:
    """Return what a query uses beside its input and tables that it is given."""
    return replace(use, relations=use.relations - {name.lower() for name in tables})


def _refusal(error: AnalysisException | ConfigInvalid) -> str:
    """Tell why a query is refused, without a word of it."""
    told = "its words are not told, since it holds a secret"
    if isinstance(error, ConfigInvalid):
        return f"the query uses what the SQL of a transform may not; {told}"
    place = _PLACE.search(str(error)) if isinstance(error, ParseException) else None
    where = f" at line {place[1]}, position {place[2]}" if place else ""
    return f"Spark refuses the query{where} ({error.getCondition()}); {told}"
