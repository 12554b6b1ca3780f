# pyright: basic, reportCallIssue=false, reportOptionalCall=false
"""Spark's own parser and analyser where no Spark runs: a small JVM, started when it is needed.

There is no session, no catalog and no data in it. What it says of a query over columns of given
types is what a task would hear from Spark, some seconds after its start, or 20 ms later on.
"""

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

from ..failures import failure_text
from ..java import JVM_OPENS, JavaNotFound, find_java, sharing_options, spark_home
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
"""How long the JVM, of 250 MB, stays for the next question."""
LONGEST_SECONDS: Final = 15.0
"""How long a question may take, the start of the JVM included."""

_PLACE = re.compile(r"line (\d+) pos")
_NOISE = re.compile(r"\s*SQLSTATE: \w+")
_CATALYST = "org.apache.spark.sql.catalyst"
_SQL_CONF = "org.apache.spark.sql.internal.SQLConf"
_STATIC_CONF = "org.apache.spark.sql.internal.StaticSQLConf"
_OPTIONS = ("-Xmx256m", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class QueryRefused(Exception):  # noqa: N818  # says what happened
    """Spark cannot make sense of a query or a schema; the text is Spark's."""


class CheckFailed(Exception):  # noqa: N818  # says what happened
    """Nothing can be said of a query: there is no Java, or it ended."""


class Columns(NamedTuple):
    """The columns of a table, each with its type as SQL spells it.

    `json` is the same as Spark's types write themselves; empty if nobody asked Spark.
    """

    types: Mapping[str, str]
    json: str = ""


@dataclass(frozen=True, slots=True)
class Analysed:
    """The columns that a query makes; `has_current` tells that it asks for clock or user."""

    columns: Columns
    has_current: bool


class QueryCheck:
    """Parses and analyses; one question at a time, from any thread."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Start nothing; `settings` are those of `SQL_MEANINGS`."""
        self._settings = settings or {}
        self._lock = threading.Lock()
        """Held while a question is asked: the JVM answers one at a time."""
        self._jvm: _Jvm | None = None
        """None until a question needs it, and after it was idle."""
        self._swap = threading.Lock()
        """Held while the JVM is taken away, so that one alone ends it."""
        self._idle: threading.Timer | None = None
        """Ends the JVM after a while without questions."""

    def columns_of(self, schema: str) -> Columns:
        """Return the columns of a schema in DDL or JSON; raises `QueryRefused`, `CheckFailed`."""
        return self._ask(lambda jvm: jvm.columns_of(schema))

    def use_of(self, query: str) -> QueryUse:
        """Return what a query uses; raises `QueryRefused` if it is no SQL, `CheckFailed`."""
        return self._ask(lambda jvm: use_of(jvm.parse(query)))

    def builtin(self) -> frozenset[str]:
        """Return the functions that Spark brings along; raises `CheckFailed`."""
        return self._ask(lambda jvm: builtin_functions(jvm.view))

    def analyse(
        self, query: str, columns: Columns, tables: Mapping[str, Columns] | None = None
    ) -> Analysed:
        """Return what a query makes of an input, beside tables by their names; raises as above."""
        named = {INPUT: columns, **(tables or {})}
        try:
            return self._ask(lambda jvm: jvm.analyse(query, named))
        except QueryRefused as refused:
            raise QueryRefused(_PLACE.sub(_as_written, str(refused))) from None

    def flaws_in_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return why Spark's settings cannot be a session's own, by name; raises `CheckFailed`."""
        return self._ask(lambda jvm: jvm.flaws_in_settings(settings))

    def close(self) -> None:
        """End the JVM, if there is one; the next question starts another."""
        with self._swap:
            jvm, self._jvm = self._jvm, None
        if jvm is not None:
            jvm.end()

    def _ask(self, question: Callable[["_Jvm"], T]) -> T:
        if not self._lock.acquire(timeout=LONGEST_SECONDS):
            raise CheckFailed("others wait for an answer, too")
        late = threading.Timer(LONGEST_SECONDS, self.close)
        late.daemon = True
        begun = time.monotonic()
        late.start()
        try:
            if (jvm := self._jvm) is None:
                jvm = self._jvm = _Jvm()  # it can be ended from now on
                jvm.connect(self._settings)
            return question(jvm)
        except (Py4JJavaError, PySparkException) as error:
            raise QueryRefused(_told(failure_text(error) or "")) from None
        except (Py4JError, OSError, ValueError, JavaNotFound) as error:
            self.close()
            told = str(error).partition("\n")[0] or type(error).__name__
            if time.monotonic() - begun >= LONGEST_SECONDS:
                told = f"Java gave no answer within {LONGEST_SECONDS:g} s"
            raise CheckFailed(told) from None
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
    """A JVM with Spark's parser and analyser in it; it ends with this process."""

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None
        """None until the JVM has told its port."""
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
        """Wait until it is there, and make the parser and the analyser."""
        port, token = (self._said() for _ in range(2))
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token)
        )
        self.view: JVMView = self._gateway.jvm
        self._parser = self._class("org.apache.spark.sql.execution.SparkSqlParser")()
        self._conf = self._settle({**SQL_AS_WRITTEN, **settings})
        self._analyzer = self._class(f"{_CATALYST}.analysis.Analyzer")(self._catalog())

    def _settle(self, settings: Mapping[str, str]) -> JavaObject:
        """Return settings that count for all of the JVM's threads.

        Spark keeps them by thread where there is no session, and py4j asks by any: while an object
        is let go of over one connection, the next question takes another.
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
        """Return the plan of a query, as it is written."""
        return self._parser.parsePlan(query)

    def columns_of(self, schema: str) -> Columns:
        """Return the columns of a schema in DDL, or as Spark's types write themselves."""
        types = "org.apache.spark.sql.types"
        if schema.startswith("{"):
            return _columns(self._class(f"{types}.DataType").fromJson(schema))
        return _columns(self._class(f"{types}.StructType").fromDDL(schema))

    def analyse(self, query: str, tables: Mapping[str, Columns]) -> Analysed:
        """Return what a query makes of tables with columns of these types."""
        tracker = self._class(f"{_CATALYST}.QueryPlanningTracker")
        clock = getattr(tracker, "$lessinit$greater$default$1")()
        plan = self._parser.parsePlan(_over(query, tables))
        plan = self._analyzer.executeAndCheck(plan, tracker(clock))
        return Analysed(_columns(plan.schema()), has_current(plan, self.view))

    def flaws_in_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return what is wrong with settings of a session, by name."""
        scala_object(self.view, _STATIC_CONF)  # else nobody has heard of them yet
        known = scala_object(self.view, _SQL_CONF)
        flaws: dict[str, str] = {}
        for name, value in settings.items():
            if known.isStaticConfigKey(name):
                flaws[name] = f"it is fixed when the engine starts: set spark.conf.{name} on nodes"
                continue
            try:
                self._class(_SQL_CONF)().setConfString(name, value)
            except Py4JJavaError as error:
                flaws[name] = _told(failure_text(error) or "")
        return flaws

    def end(self) -> None:
        """End it at once: there is nothing in it to lose."""
        self._process.kill()
        self._process.communicate()
        if self._gateway is None:
            return
        client = self._gateway._gateway_client  # noqa: SLF001  # py4j has no quiet way
        client.is_connected = False
        client.close()

    def _said(self) -> str:
        said = self._process.stdout.readline() if self._process.stdout else ""
        if not said:
            raise OSError("the JVM ended before it could be asked")
        return said.strip()

    def _catalog(self) -> JavaObject:
        """Return a catalog without anything in it but the functions that Spark brings along."""
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


def _over(query: str, tables: Mapping[str, Columns]) -> str:
    """Return a query as `transforms` runs it, over tables that have columns but no rows."""
    empty = {
        name: ", ".join(
            f"CAST(NULL AS {kind}) AS {quoted(each)}" for each, kind in of.types.items()
        )
        for name, of in tables.items()
    }
    named = ", ".join(f"{name} AS (SELECT {columns})" for name, columns in empty.items())
    return f"WITH {named} SELECT * FROM (\n{query}\n)"  # noqa: S608


def _told(text: str) -> str:
    """Return the first line that says something, without what only Spark's own code knows."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = lines[0] if lines else "Spark gives no reason"
    return _NOISE.sub("", told).rstrip(" ;.")


def _as_written(place: "re.Match[str]") -> str:
    """Return a place in a query as it was before a line was put in front of it."""
    return f"line {int(place[1]) - 1} pos"
