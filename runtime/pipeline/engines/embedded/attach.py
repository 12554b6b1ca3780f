# pyright: basic
"""Attaching PySpark in this process to a JVM, one at a time, and warming up a new JVM.

PySpark keeps its JVM in class attributes and finds a running one through the environment. Both are
private (pyspark 4.1 to 4.3) and are used only in this module.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any, cast

import py4j.java_gateway
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
from pyspark import SparkConf, SparkContext, SparkFiles
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ..engine import JvmHeap
from ..java import environment
from .jvm import JvmGateway

NOISY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""PySpark's loggers that write to the terminal."""

HEAP_SECONDS = 5.0
"""How often a JVM is asked for its heap."""
_LEFTOVER_VARIABLES = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""The environment variables that a context sets for the sockets to its JVM."""


def attach(gateway: JvmGateway, *, is_shared: bool = False) -> SparkSession:
    """Create a session in the JVM behind a gateway; raises PySpark's errors.

    A shared JVM already has a Spark context and sessions of other processes. The new session has
    its own settings and views.
    """
    _silence_loggers()
    place = {"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.secret}
    with environment(place):
        java = launch_gateway()  # type: ignore[no-untyped-call]
    context = _shared_context(java) if is_shared else SparkContext(gateway=java)
    context.pythonExec = sys.executable
    context._accumulatorServer.handle_error = _ignore  # type: ignore[assignment,method-assign]  # noqa: SLF001
    sys.path.remove(SparkFiles.getRootDirectory())  # that folder is for executors
    session = SparkSession(context)
    return session.newSession() if is_shared else session


def _shared_context(java: Any) -> SparkContext:  # noqa: ANN401  # py4j has no types
    """Return the existing context of a JVM; it must not be stopped, since all processes use it."""
    jsc = java.jvm.JavaSparkContext(java.jvm.org.apache.spark.SparkContext.getOrCreate())
    conf = SparkConf(_jvm=java.jvm, _jconf=jsc.getConf())
    return SparkContext(gateway=java, jsc=jsc, conf=conf)


class ExtraGateway:
    """An additional gateway of a JVM for one process; closing it releases the process's objects."""

    def __init__(self, session: SparkSession) -> None:
        """Open it through a session of this process; raises py4j's errors."""
        context = cast("Any", session.sparkContext)  # py4j has no types
        spark = context._jvm.org.apache.spark  # noqa: SLF001  # PySpark hides it
        self._server = spark.api.python.Py4JServer(context._jsc.getConf())  # noqa: SLF001
        self._server.start()
        port, secret = self._server.getListeningPort(), self._server.secret()
        self.place = JvmGateway(int(port), str(secret))
        """The address of the gateway."""

    def close(self) -> None:
        """Disconnect the process, and release all its objects in the JVM."""
        with suppress(Exception):  # the JVM is gone, and so is the gateway
            self._server.shutdown()


def detach() -> None:
    """Detach PySpark from its JVM, which is gone or is used by other processes."""
    context = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context._jsc = None  # noqa: SLF001  # else stop() calls the JVM
        context.stop()
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        client = gateway._gateway_client  # noqa: SLF001
        client.is_connected = False  # its port may soon be another's
        client.close()
        client.finalizer_deque.appendleft(SHUTDOWN_FINALIZER_WORKER)
        gateway.shutdown_callback_server()
    for name in _LEFTOVER_VARIABLES:
        os.environ.pop(name, None)
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001


def end_group(session: SparkSession, group: str) -> None:
    """Cancel the Spark jobs of a job group, including future ones."""
    with suppress(Exception):  # the JVM is gone, and so are the jobs
        driver: Any = session.sparkContext._jsc  # noqa: SLF001  # PySpark hides it
        driver.sc().cancelJobGroupAndFutureJobs(group)


def is_responsive(session: SparkSession) -> bool:
    """Wait without a limit for any answer of the JVM; False: it is gone."""
    try:
        driver: Any = session.sparkContext._jsc  # noqa: SLF001  # PySpark hides it
        driver.isLocal()  # one call of an object; the name of a class takes five
    except Exception:  # noqa: BLE001  # py4j raises many types if a JVM is gone
        return False
    return True


def heap_reader(session: SparkSession) -> Callable[[], JvmHeap]:
    """Return a function that asks the JVM for its heap; both raise py4j's errors.

    The classes of collectors are not public, so their method is called by that of the interface.
    """
    context: Any = session.sparkContext
    java, new_array = context._jvm.java.lang, context._gateway.new_array  # noqa: SLF001
    runtime, beans = java.Runtime.getRuntime(), java.management.ManagementFactory
    collectors = [*beans.getGarbageCollectorMXBeans()]
    kind = java.Class.forName("java.lang.management.GarbageCollectorMXBean")
    read_ms = kind.getMethod("getCollectionTime", new_array(java.Class, 0))
    nothing = new_array(java.Object, 0)

    def read() -> JvmHeap:
        gc_ms = sum(max(0, read_ms.invoke(each, nothing)) for each in collectors)
        committed = runtime.totalMemory()
        return JvmHeap(committed - runtime.freeMemory(), committed, runtime.maxMemory(), gc_ms)

    return read


def follow_heap(
    session: SparkSession, ended: Event, set_heap: Callable[[JvmHeap | None], None]
) -> None:
    """Set the heap of a JVM every few seconds until it has ended; None while it does not tell."""
    read: Callable[[], JvmHeap] | None = None
    while not ended.is_set():
        try:
            read = read or heap_reader(session)
            set_heap(read())
        except Exception:  # noqa: BLE001  # py4j raises many types if a JVM is gone, or out of memory
            set_heap(None)
        ended.wait(HEAP_SECONDS)
    set_heap(None)


def _silence_loggers() -> None:
    """Keep PySpark and py4j from printing errors that they raise as well."""
    for name in NOISY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    # It calls logging.exception() on a lost JVM, which configures the root logger.
    py4j.java_gateway.logging = py4j.java_gateway.logger


def _ignore(_request: object, _client: object) -> None:
    """Print nothing about a JVM that closed its connection: its watch thread reports that."""


_UNUSED_DEFAULTS = frozenset({"mapred-default.xml", "yarn-default.xml"})
_COMMITTERS = "mapreduce.outputcommitter."
"""The defaults that select the committer of each file system are used."""


def drop_unused_defaults(session: SparkSession) -> None:
    """Remove the defaults of YARN and MapReduce from Hadoop's settings: 700 of 1,100.

    Spark copies and serialises all of them for each job, which takes a tenth of a small batch.
    Settings of users, and those in their own site files, stay.
    """
    context: Any = session.sparkContext
    conf, written = context._jsc.hadoopConfiguration(), context._jvm.java.io.StringWriter()  # noqa: SLF001
    context._jvm.org.apache.hadoop.conf.Configuration.dumpConfiguration(conf, written)  # noqa: SLF001
    for each in json.loads(written.toString())["properties"]:
        is_unused = each["resource"] in _UNUSED_DEFAULTS
        if is_unused and not each["key"].startswith(_COMMITTERS):
            conf.unset(each["key"])


def warm_up(session: SparkSession, folder: Path) -> None:
    """Run the operations of a first batch on a few rows: csv, SQL, writing and reading parquet.

    Functions such as `upper` are left out: they load ICU's tables, which takes 2 s of CPU time.
    """
    rows, out = folder / "warm.csv", folder / "warm.parquet"
    rows.write_text("id,day,name\n1,2024-01-01,a\n2,2024-01-02,b\n")
    read = session.read.csv(str(rows), header=True, schema="id bigint, day date, name string")
    shaped = session.sql("SELECT id + 1 AS id, day, name || day AS name FROM {rows}", rows=read)
    shaped.write.partitionBy("day").parquet(str(out))
    session.read.parquet(str(out)).count()
