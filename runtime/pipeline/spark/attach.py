# pyright: basic
"""PySpark in this process, tied to one JVM at a time, and what makes a fresh JVM fast.

PySpark keeps its JVM in class attributes and looks for a running one in the environment.
Both are its private ways (pyspark 4.1 to 4.3): they are touched here and nowhere else.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import py4j.java_gateway
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
from pyspark import SparkConf, SparkContext, SparkFiles
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from .java import environment
from .jvm import JvmGateway

LOUD = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers that come with a handler for the terminal."""

_LEFT = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""What a context leaves in the environment, for the sockets to its JVM."""


def attach(gateway: JvmGateway, *, is_shared: bool = False) -> SparkSession:
    """Make a session in the JVM behind a gateway; raises what PySpark raises.

    In a JVM that is shared, other processes have sessions: it has a context already, and settings
    and views of this session are its own.
    """
    _hush()
    place = {"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.secret}
    with environment(place):
        java = launch_gateway()  # type: ignore[no-untyped-call]
    context = _shared_context(java) if is_shared else SparkContext(gateway=java)
    context.pythonExec = sys.executable
    context._accumulatorServer.handle_error = _ignore  # type: ignore[assignment,method-assign]  # noqa: SLF001
    sys.path.remove(SparkFiles.getRootDirectory())  # what is added there is for executors
    session = SparkSession(context)
    return session.newSession() if is_shared else session


def _shared_context(java: Any) -> SparkContext:  # noqa: ANN401  # py4j has no types
    """Take the context that a JVM has; never stop it, for it is everybody's."""
    jsc = java.jvm.JavaSparkContext(java.jvm.org.apache.spark.SparkContext.getOrCreate())
    conf = SparkConf(_jvm=java.jvm, _jconf=jsc.getConf())
    return SparkContext(gateway=java, jsc=jsc, conf=conf)


class OwnGateway:
    """One more gateway of a JVM, for one process: what that process holds there goes with it."""

    def __init__(self, session: SparkSession) -> None:
        """Open it, by a session of this process; raises what py4j raises."""
        context = cast("Any", session.sparkContext)  # py4j has no types
        spark = context._jvm.org.apache.spark  # noqa: SLF001  # PySpark hides it
        self._server = spark.api.python.Py4JServer(context._jsc.getConf())  # noqa: SLF001
        self._server.start()
        port, secret = self._server.getListeningPort(), self._server.secret()
        self.place = JvmGateway(int(port), str(secret))
        """Where it takes calls."""

    def close(self) -> None:
        """Cut the process off, and let go of all that it holds in the JVM."""
        with suppress(Exception):  # the JVM is gone, and it with that
            self._server.shutdown()


def detach() -> None:
    """Forget the JVM that this process was tied to: it is gone, or goes on with others."""
    context = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context._jsc = None  # noqa: SLF001  # else stop() asks the JVM
        context.stop()
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        client = gateway._gateway_client  # noqa: SLF001
        client.is_connected = False  # its port may soon be another's
        client.close()
        client.finalizer_deque.appendleft(SHUTDOWN_FINALIZER_WORKER)
        gateway.shutdown_callback_server()
    for name in _LEFT:
        os.environ.pop(name, None)
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001


def end_group(session: SparkSession, group: str) -> None:
    """Cancel the Spark jobs of a group, and any that would begin in it later."""
    with suppress(Exception):  # the JVM is gone, and with it the jobs
        driver: Any = session.sparkContext._jsc  # noqa: SLF001  # PySpark hides it
        driver.sc().cancelJobGroupAndFutureJobs(group)


def is_heard(session: SparkSession) -> bool:
    """Wait for any answer of the JVM, for ever if need be; False: it is gone."""
    try:
        gateway: Any = session.sparkContext._gateway  # noqa: SLF001
        return bool(gateway.jvm.java.lang.System.nanoTime())
    except Exception:  # noqa: BLE001  # whatever py4j makes of a JVM that is gone
        return False


def _hush() -> None:
    """Keep PySpark and py4j from printing to the terminal whatever they raise anyway."""
    for name in LOUD:
        PySparkLogger.getLogger(name).disabled = True
    # It calls logging.exception() on a lost JVM, which configures the root logger.
    py4j.java_gateway.logging = py4j.java_gateway.logger


def _ignore(_request: object, _client: object) -> None:
    """Say nothing of a JVM that hung up: its watcher tells, and not on the terminal."""


_UNUSED_DEFAULTS = frozenset({"mapred-default.xml", "yarn-default.xml"})
_COMMITTERS = "mapreduce.outputcommitter."
"""Which committer writes to which file system is told by a default, too."""


def drop_unused_defaults(session: SparkSession) -> None:
    """Remove the defaults of YARN and MapReduce from Hadoop's settings: 700 of 1,100.

    Spark copies all of them for each job and packs them for executors, which takes a tenth of a
    small batch. What users have set, or spelled out in a file of their site, stays.
    """
    context: Any = session.sparkContext
    conf, written = context._jsc.hadoopConfiguration(), context._jvm.java.io.StringWriter()  # noqa: SLF001
    context._jvm.org.apache.hadoop.conf.Configuration.dumpConfiguration(conf, written)  # noqa: SLF001
    for each in json.loads(written.toString())["properties"]:
        is_unused = each["resource"] in _UNUSED_DEFAULTS
        if is_unused and not each["key"].startswith(_COMMITTERS):
            conf.unset(each["key"])


def warm_up(session: SparkSession, folder: Path) -> None:
    """Do what a first batch does, in small: csv, SQL, partitioned parquet and back.

    Without `upper` and its like: they load ICU's tables, two seconds of a processor's time.
    """
    rows, out = folder / "warm.csv", folder / "warm.parquet"
    rows.write_text("id,day,name\n1,2024-01-01,a\n2,2024-01-02,b\n")
    read = session.read.csv(str(rows), header=True, schema="id bigint, day date, name string")
    shaped = session.sql("SELECT id + 1 AS id, day, name || day AS name FROM {rows}", rows=read)
    shaped.write.partitionBy("day").parquet(str(out))
    session.read.parquet(str(out)).count()
