# pyright: basic, reportCallIssue=false, reportOptionalCall=false
"""Spark's parser and analyser in a small JVM without a Spark session, started on demand.

The JVM has no catalog and no data. For a query over columns of given types it reports the same
errors as Spark does in a task. The first answer takes some seconds, later ones 20 ms.
"""

import gc
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, JVMView
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from ....processes.java import JavaNotFound, find_java
from ..failures import failure_text
from ..java import JVM_OPENS, sharing_options, spark_home
from ..settings import SQL_AS_WRITTEN
from ..spelling import quoted
from .query import (
    INPUT,
    QueryUse,
    builtin_functions,
    has_current,
    java_class,
    scala_object,
    use_of,
)

T = TypeVar("T")

IDLE_SECONDS: Final = 60.0
"""How long the idle JVM, which takes 250 MB, is kept for the next call."""
LONGEST_SECONDS: Final = 15.0
"""The time limit of a call, including the start of the JVM."""

_PLACE = re.compile(r"line (\d+) pos")
_NOISE = re.compile(r"\s*SQLSTATE: \w+")
_CATALYST = "org.apache.spark.sql.catalyst"
_SQL_CONF = "org.apache.spark.sql.internal.SQLConf"
_STATIC_CONF = "org.apache.spark.sql.internal.StaticSQLConf"
_OPTIONS = ("-Xmx256m", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class QueryRefused(Exception):  # noqa: N818  # says what happened
    """Spark refuses a query or a schema; the text is Spark's."""


class CheckFailed(Exception):  # noqa: N818  # says what happened
    """A query could not be checked, because there is no Java or it ended."""


class Columns(NamedTuple):
    """The SQL types of a table's columns, by name.

    `json` is the schema in Spark's JSON format; empty if it was not requested from Spark.
    """

    types: Mapping[str, str]
    json: str = ""


@dataclass(frozen=True, slots=True)
class AnalysedQuery:
    """The columns of a query's result; `has_current`: it depends on the clock or the user."""

    columns: Columns
    has_current: bool


class QueryCheck:
    """Parses and analyses queries; usable from any thread, one call at a time."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Start no JVM yet; `settings` are those of `SQL_MEANINGS`."""
        self._settings = settings or {}
        self._lock = threading.Lock()
        """Held during a call: the JVM handles one at a time."""
        self._jvm: _Jvm | None = None
        """None until a call needs it, and after it was idle."""
        self._close_lock = threading.Lock()
        """Held while the JVM is removed, so that only one thread ends it."""
        self._idle: threading.Timer | None = None
        """Ends the JVM when it was idle for `IDLE_SECONDS`."""

    def columns_of(self, schema: str) -> Columns:
        """Return the columns of a schema in DDL or JSON; raises `QueryRefused`, `CheckFailed`."""
        return self._call(lambda jvm: jvm.columns_of(schema))

    def use_of(self, query: str) -> QueryUse:
        """Return the tables and functions of a query; raises `QueryRefused`, `CheckFailed`."""
        return self._call(lambda jvm: use_of(jvm.parse(query)))

    def builtin(self) -> frozenset[str]:
        """Return the names of Spark's built-in functions; raises `CheckFailed`."""
        return self._call(lambda jvm: builtin_functions(jvm.view))

    def analyse(
        self, query: str, columns: Columns, tables: Mapping[str, Columns] | None = None
    ) -> AnalysedQuery:
        """Analyse a query over `input` and other tables by name; raises as `columns_of` does."""
        named = {INPUT: columns, **(tables or {})}
        try:
            return self._call(lambda jvm: jvm.analyse(query, named))
        except QueryRefused as refused:
            raise QueryRefused(_PLACE.sub(_original_place, str(refused))) from None

    def flaws_in_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return why a session cannot have these settings, by name; raises `CheckFailed`."""
        return self._call(lambda jvm: jvm.flaws_in_settings(settings))

    def close(self) -> None:
        """End the JVM, if there is one; the next call starts another."""
        with self._close_lock:
            jvm, self._jvm = self._jvm, None
        if jvm is not None:
            jvm.end()

    def _call(self, call: Callable[["_Jvm"], T]) -> T:
        if not self._lock.acquire(timeout=LONGEST_SECONDS):
            raise CheckFailed("others wait for an answer, too")
        begun = time.monotonic()  # before the timer, so that what it ends took as long
        late = _start_timer(LONGEST_SECONDS, self.close)
        try:
            if (jvm := self._jvm) is None:
                jvm = self._jvm = _Jvm()  # from here on `close` can end it
                jvm.connect(self._settings)
            return call(jvm)
        except (Py4JJavaError, PySparkException) as error:
            raise QueryRefused(_first_reason(failure_text(error) or "")) from None
        except (Py4JError, OSError, ValueError, JavaNotFound) as error:
            self.close()
            reason = str(error).partition("\n")[0] or type(error).__name__
            if time.monotonic() - begun >= LONGEST_SECONDS:
                reason = f"Java gave no answer within {LONGEST_SECONDS:g} s"
            raise CheckFailed(reason) from None
        finally:
            late.cancel()
            self._end_when_idle()
            self._lock.release()

    def _end_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = threading.Timer(IDLE_SECONDS, self._end_if_idle)
        self._idle.daemon = True
        self._idle.start()

    def _end_if_idle(self) -> None:
        if self._lock.acquire(blocking=False):
            self.close()
            self._lock.release()


class _Jvm:
    """A JVM with Spark's parser and analyser, which ends with this process."""

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None
        """None until the JVM has printed its port."""
        java = find_java()
        self._process = subprocess.Popen(  # noqa: S603  # our own command line
            [
                *(str(java.command), *_OPTIONS, *sharing_options(java)),
                *(f"--add-opens={each}=ALL-UNNAMED" for each in JVM_OPENS),
                *("-cp", str(spark_home() / "jars" / "*"), "py4j.GatewayServer"),
                *("--die-on-broken-pipe", "--enable-auth", "0"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def connect(self, settings: Mapping[str, str]) -> None:
        """Wait for the JVM, and create the parser and the analyser."""
        port, token = (self._read_line() for _ in range(2))
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token)
        )
        self.view: JVMView = self._gateway.jvm
        self._parser = self._class("org.apache.spark.sql.execution.SparkSqlParser")()
        self._conf = self._apply_settings({**SQL_AS_WRITTEN, **settings})
        self._analyzer = self._class(f"{_CATALYST}.analysis.Analyzer")(self._catalog())

    def _apply_settings(self, settings: Mapping[str, str]) -> JavaObject:
        """Set settings for all threads of the JVM, and return them.

        Without a session Spark keeps settings by thread, and py4j may use any thread: while it
        releases an object over one connection, the next call uses another one.
        """
        conf = self._class(_SQL_CONF)()
        for key, value in settings.items():
            conf.setConfString(key, value)
        named = self._class("java.lang.Class").forName
        always = self._class("java.lang.invoke.MethodHandles").constant(named(_SQL_CONF), conf)
        proxies = self._class("java.lang.invoke.MethodHandleProxies")
        getter = proxies.asInterfaceInstance(named("scala.Function0"), always)
        scala_object(self.view, _SQL_CONF).setSQLConfGetter(getter)
        return conf

    def parse(self, query: str) -> JavaObject:
        """Return the parsed plan of a query."""
        return self._parser.parsePlan(query)

    def columns_of(self, schema: str) -> Columns:
        """Return the columns of a schema in DDL or in Spark's JSON format."""
        types = "org.apache.spark.sql.types"
        if schema.startswith("{"):
            return _columns(self._class(f"{types}.DataType").fromJson(schema))
        return _columns(self._class(f"{types}.StructType").fromDDL(schema))

    def analyse(self, query: str, tables: Mapping[str, Columns]) -> AnalysedQuery:
        """Analyse a query over tables with these columns."""
        tracker = self._class(f"{_CATALYST}.QueryPlanningTracker")
        clock = getattr(tracker, "$lessinit$greater$default$1")()
        plan = self._parser.parsePlan(_with_empty_tables(query, tables))
        plan = self._analyzer.executeAndCheck(plan, tracker(clock))
        return AnalysedQuery(_columns(plan.schema()), has_current(plan, self.view))

    def flaws_in_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the errors in settings of a session, by name."""
        scala_object(self.view, _STATIC_CONF)  # loading it registers the static settings
        known = scala_object(self.view, _SQL_CONF)
        flaws: dict[str, str] = {}
        for name, value in settings.items():
            if known.isStaticConfigKey(name):
                flaws[name] = f"it is fixed when the engine starts: set spark.conf.{name} on nodes"
                continue
            try:
                self._class(_SQL_CONF)().setConfString(name, value)
            except Py4JJavaError as error:
                flaws[name] = _first_reason(failure_text(error) or "")
        return flaws

    def end(self) -> None:
        """Kill it: it has no state to save."""
        self._process.kill()
        self._process.communicate()
        if self._gateway is None:
            return
        client = self._gateway._gateway_client  # noqa: SLF001  # py4j has no quiet way
        client.is_connected = False
        client.close()

    def _read_line(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise OSError("the JVM ended before it could be asked")
        return line.strip()

    def _catalog(self) -> JavaObject:
        """Return a catalog that has only Spark's built-in functions."""
        spark_conf = self._class("org.apache.spark.SparkConf")(False)  # noqa: FBT003
        hadoop_conf = self._class("org.apache.hadoop.conf.Configuration")(False)  # noqa: FBT003
        functions, table_functions = (
            scala_object(self.view, f"{_CATALYST}.analysis.{name}").builtin()
            for name in ("FunctionRegistry", "TableFunctionRegistry")
        )
        stored = self._class(f"{_CATALYST}.catalog.InMemoryCatalog")(spark_conf, hadoop_conf)
        catalog = self._class(f"{_CATALYST}.catalog.SessionCatalog")
        return catalog(stored, functions, table_functions, self._conf)

    def _class(self, name: str) -> JavaObject:
        return java_class(self.view, name)


def _columns(struct: JavaObject) -> Columns:
    types = {str(each.name()): str(each.dataType().sql()) for each in struct.fields()}
    return Columns(types, str(struct.json()))


def _with_empty_tables(query: str, tables: Mapping[str, Columns]) -> str:
    """Return a query as `transforms` runs it, over tables with columns but no rows."""
    empty = {
        name: ", ".join(
            f"CAST(NULL AS {kind}) AS {quoted(each)}" for each, kind in of.types.items()
        )
        for name, of in tables.items()
    }
    named = ", ".join(f"{name} AS (SELECT {columns})" for name, columns in empty.items())
    return f"WITH {named} SELECT * FROM (\n{query}\n)"  # noqa: S608


def _first_reason(text: str) -> str:
    """Return the first non-empty line of an error, without its SQL state."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = lines[0] if lines else "Spark gives no reason"
    return _NOISE.sub("", reason).rstrip(" ;.")


def _original_place(place: "re.Match[str]") -> str:
    """Return a place in the user's query, which has one line fewer before it."""
    return f"line {int(place[1]) - 1} pos"


def _start_timer(seconds: float, act: Callable[[], None]) -> threading.Timer:
    """Start a timer, and collect no garbage until it runs.

    Python tells a JVM of each of its objects that is garbage, and waits for it: without the timer
    nobody would end one that hangs.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
    finally:
        if collects:
            gc.enable()
    return timer
