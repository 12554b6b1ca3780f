# pyright: basic, reportCallIssue=false, reportOptionalCall=false
"""What Spark says of a query before it runs in a session.

A JVM of ours is asked itself, as the session is set. A server of Spark Connect hands out no plan
of what it parses: there the parser and the analyser of this process's own PySpark are asked, which
is of the server's release, in a small JVM that is set as the session is.
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
    """Answers for one session; raises `EngineDown` where there is no answer."""

    def use_of(self, query: str) -> QueryUse:
        """Return what a query uses; raises `QueryRefused` or what PySpark does if it is none."""
        ...

    def builtin(self) -> frozenset[str]:
        """Return the names of the functions that Spark brings along."""
        ...

    def has_current(self, made: "DataFrame", query: str, tables: "Mapping[str, DataFrame]") -> bool:
        """Tell whether what a query makes of tables hangs on the clock, the user or the like."""
        ...


def check_of(spark: "SparkSession") -> SessionCheck:
    """Return what answers for a session; nothing is started yet."""
    if not is_remote():
        return _Within(spark)
    settings: Mapping[str, str] = spark.conf.getAll
    means = {name: text for name, text in settings.items() if name.startswith(SQL_MEANINGS)}
    with _MAKING:
        return _CHECKS.setdefault(frozenset(means.items()), _Beside(QueryCheck(means)))


class _Within:
    """Asks the JVM of a session."""

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
        query: str,  # noqa: ARG002  # it is told by its plan
        tables: "Mapping[str, DataFrame]",  # noqa: ARG002
    ) -> bool:
        plan = made._jdf.queryExecution().analyzed()  # noqa: SLF001
        return has_current(plan, self._spark._jvm)  # noqa: SLF001


class _Beside:
    """Asks a JVM that is for that alone, and ends when it was idle for a while."""

    def __init__(self, check: QueryCheck) -> None:
        self._check = check

    def use_of(self, query: str) -> QueryUse:
        return _asked(lambda: self._check.use_of(query))

    def builtin(self) -> frozenset[str]:
        return _asked(self._check.builtin)

    def has_current(
        self,
        made: "DataFrame",  # noqa: ARG002  # its plan is on the server
        query: str,
        tables: "Mapping[str, DataFrame]",
    ) -> bool:
        return _asked(lambda: self._has_current(query, tables))

    def _has_current(self, query: str, tables: "Mapping[str, DataFrame]") -> bool:
        columns = {
            name: self._check.columns_of(each.schema.json()) for name, each in tables.items()
        }
        return self._check.analyse(query, columns.pop(INPUT), columns).has_current


_CHECKS: Final[dict[frozenset[tuple[str, str]], _Beside]] = {}
"""By how sessions are set, as far as that changes what a query means."""
_MAKING: Final = Lock()


def _asked(question: Callable[[], T]) -> T:
    try:
        return question()
    except CheckFailed as failed:
        raise EngineDown(f"no query runs before it is checked, and nobody can: {failed}") from None
