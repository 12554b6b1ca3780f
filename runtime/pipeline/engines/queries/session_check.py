# pyright: basic, reportCallIssue=false, reportOptionalCall=false
"""Checks of a query before it runs in a session.

With a JVM of ours, the session's own parser is used. A Spark Connect server does not return parsed
plans. There the parser and the analyser of this process's PySpark are used, which is of the
server's release, in a small JVM with the settings of the session.
"""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pyspark.sql.utils import is_remote

from ..engine import EngineDown
from ..settings import SQL_MEANINGS
from .query import INPUT, QueryUse, builtin_functions, has_current, use_of
from .query_check import CheckFailed, QueryCheck

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


class SessionCheck(Protocol):
    """Checks queries for one session; raises `EngineDown` if it cannot."""

    def use_of(self, query: str) -> QueryUse:
        """Return the constructs of a query; raises `QueryRefused` or PySpark's error for no SQL."""
        ...

    def builtin(self) -> frozenset[str]:
        """Return the names of Spark's built-in functions."""
        ...

    def has_current(self, made: "DataFrame", query: str, tables: "Mapping[str, DataFrame]") -> bool:
        """Return whether the result of a query depends on the clock, the user or the like."""
        ...


def check_of(spark: "SparkSession") -> SessionCheck:
    """Return the check for a session; it starts no JVM yet."""
    if not is_remote():
        return _SessionJvm(spark)
    settings: Mapping[str, str] = spark.conf.getAll
    means = {name: text for name, text in settings.items() if name.startswith(SQL_MEANINGS)}
    with _CHECKS_LOCK:
        return _CHECKS.setdefault(frozenset(means.items()), _SeparateJvm(QueryCheck(means)))


class _SessionJvm:
    """Uses the JVM of the session."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark: Any = spark

    def use_of(self, query: str) -> QueryUse:
        state = self._spark._jsparkSession.sessionState()  # noqa: SLF001  # PySpark hides it
        return use_of(state.sqlParser().parsePlan(query))

    def builtin(self) -> frozenset[str]:
        return builtin_functions(self._spark._jvm)  # noqa: SLF001

    def has_current(
        self,
        made: "DataFrame",
        query: str,  # noqa: ARG002  # the plan of `made` has it
        tables: "Mapping[str, DataFrame]",  # noqa: ARG002
    ) -> bool:
        plan = made._jdf.queryExecution().analyzed()  # noqa: SLF001
        return has_current(plan, self._spark._jvm)  # noqa: SLF001


class _SeparateJvm:
    """Uses a separate JVM, which ends when it was idle for a while."""

    def __init__(self, check: QueryCheck) -> None:
        self._check = check

    def use_of(self, query: str) -> QueryUse:
        return _ask(lambda: self._check.use_of(query))

    def builtin(self) -> frozenset[str]:
        return _ask(self._check.builtin)

    def has_current(
        self,
        made: "DataFrame",  # noqa: ARG002  # its plan is on the server
        query: str,
        tables: "Mapping[str, DataFrame]",
    ) -> bool:
        return _ask(lambda: self._has_current(query, tables))

    def _has_current(self, query: str, tables: "Mapping[str, DataFrame]") -> bool:
        columns = {
            name: self._check.columns_of(each.schema.json()) for name, each in tables.items()
        }
        return self._check.analyse(query, columns.pop(INPUT), columns).has_current


_CHECKS: Final[dict[frozenset[tuple[str, str]], _SeparateJvm]] = {}
"""The checks, by the settings that change the meaning of a query."""
_CHECKS_LOCK: Final = Lock()


def _ask(question: Callable[[], T]) -> T:
    try:
        return question()
    except CheckFailed as failed:
        raise EngineDown(f"the query cannot be checked, so it does not run: {failed}") from None
