# pyright: basic, reportCallIssue=false, reportOptionalCall=false, reportArgumentType=false
"""The transforms that are built in: a query over the batch, or its select list alone."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.errors import AnalysisException, ParseException

from ...spark.query import QueryUse, builtin_functions, has_current, use_of
from ..config import ConfigInvalid
from ..spi import Transform
from .sql_rules import LONGEST_QUERY, flaws, suspects, told_function

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession


_PLACE: Final = re.compile(r"\(line (\d+), pos (\d+)\)")


class Sql(Transform):
    """A query over the table `input`, which is the batch; it sees no other batch.

    What it may use beside that is looked at before it runs: `allowed` is the setting `sql.allow`.
    No word of a query that holds a secret is told when it is refused: a quote in the secret may
    have made words of its parts.
    """

    def __init__(
        self, query: str, allowed: Collection[str] = (), *, holds_secret: bool = False
    ) -> None:
        self._query = query.strip().rstrip(";")
        self._allowed = allowed
        self._holds_secret = holds_secret
        self._use: QueryUse | None = None
        """What the query uses, once it was checked; each batch would find the same."""

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Describe the rows that the query makes of the batch; raises `ConfigInvalid`."""
        try:
            return self._made_of(frame)
        except (AnalysisException, ConfigInvalid) as error:
            if not self._holds_secret:
                raise
            raise ConfigInvalid(_refusal(error)) from None

    def _made_of(self, frame: "DataFrame") -> "DataFrame":
        self._use = self._use or self._checked(frame.sparkSession)
        # Views belong to the session, which all tasks share: each batch takes a name of its
        # own, and a common table expression gives it the name that the query knows.
        view = f"fairlead_{uuid4().hex}"
        frame.createOrReplaceTempView(view)
        try:
            made = frame.sparkSession.sql(
                f"WITH input AS (SELECT * FROM {view}) SELECT * FROM (\n{self._query}\n)"  # noqa: S608
            )
        finally:
            frame.sparkSession.catalog.dropTempView(view)
        if words := suspects(self._use, frame.columns, self._allowed):
            plan: JavaObject = made._jdf.queryExecution().analyzed()  # noqa: SLF001
            if has_current(plan, made.sparkSession._jvm):  # noqa: SLF001
                raise ConfigInvalid("; ".join(map(told_function, words)))
        return made

    def _checked(self, spark: "SparkSession") -> QueryUse:
        """Return what the query uses, if that is allowed; nothing is run before."""
        if len(self._query) > LONGEST_QUERY:
            raise ConfigInvalid(f"a query has at most {LONGEST_QUERY} letters")
        state: JavaObject = spark._jsparkSession.sessionState()  # noqa: SLF001
        use = use_of(state.sqlParser().parsePlan(self._query))
        wrong = flaws(use, builtin_functions(spark._jvm), self._allowed)  # noqa: SLF001
        if wrong:
            raise ConfigInvalid("; ".join(wrong))
        return use


def selected(columns: str) -> str:
    """Return the query that keeps a select list's columns: `carrier, dep_delay / 60 AS h`."""
    return f"SELECT {columns} FROM input"  # noqa: S608  # the user's own SQL, on his data


def _refusal(error: AnalysisException | ConfigInvalid) -> str:
    """Tell why a query is refused, without a word of it."""
    told = "its words are not told, since it holds a secret"
    if isinstance(error, ConfigInvalid):
        return f"the query uses what the SQL of a transform may not; {told}"
    place = _PLACE.search(str(error)) if isinstance(error, ParseException) else None
    where = f" at line {place[1]}, position {place[2]}" if place else ""
    return f"Spark refuses the query{where} ({error.getCondition()}); {told}"
