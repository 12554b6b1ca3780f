"""Spark's settings: our defaults, the user's over them, and those that users must not set."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

STANDALONE = "spark://"
"""The beginning of the address of a standalone cluster's master."""
CONNECT = "sc://"
"""The beginning of the address of a Spark Connect server."""
AUTH_SECRET = "spark.authenticate.secret"  # noqa: S105  # its name
HOST = "spark.driver.host"
BIND_ADDRESS = "spark.driver.bindAddress"

_LOOPBACK = "a driver that jobs can be sent to listens on loopback only"
_ONE_DRIVER = "the node's own setting spark.master says where Spark runs"
_CANCELLATION = "the Python code of a cancelled job must end soon"
_AUTHENTICATED = "its ports accept only clients with the secret that each JVM creates for itself"
_INTERPRETER = "Python code must run where fairlead itself is installed"

REFUSED: Mapping[str, str] = {
    BIND_ADDRESS: _LOOPBACK,
    HOST: _LOOPBACK,
    "spark.api.mode": _ONE_DRIVER,
    "spark.master": _ONE_DRIVER,
    "spark.remote": _ONE_DRIVER,
    "spark.submit.deployMode": _ONE_DRIVER,
    "spark.authenticate": _AUTHENTICATED,
    AUTH_SECRET: _AUTHENTICATED,
    "spark.authenticate.secret.file": _AUTHENTICATED,
    "spark.authenticate.secret.driver.file": _AUTHENTICATED,
    "spark.network.crypto.enabled": _AUTHENTICATED,
    "spark.network.crypto.saslFallback": _AUTHENTICATED,
    "spark.python.task.killTimeout": _CANCELLATION,
    "spark.python.use.daemon": _CANCELLATION,
    "spark.pyspark.driver.python": _INTERPRETER,
    "spark.pyspark.python": _INTERPRETER,
    "spark.local.dir": "it lies in the worker's folder, which is removed when the engine closes",
}
"""Settings that are needed for safety, each with the reason why a user cannot set it."""

OF_CLUSTERS = frozenset({AUTH_SECRET, HOST, BIND_ADDRESS})
"""Refused settings that a user must set for a cluster, whose executors are on other hosts."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

SQL_MEANINGS = (
    "spark.sql.ansi.",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.",
    "spark.sql.variable.",
)
"""The prefixes of settings that change the meaning of a query."""

SQL_AS_WRITTEN: Mapping[str, str] = {"spark.sql.variable.substitute": "false"}
"""Otherwise `${env:X}`, `${system:x}` and `${spark.x}` in a query are replaced by node values."""

OF_SESSIONS: Mapping[str, str] = {
    **SQL_AS_WRITTEN,
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.connect.serverStacktrace.enabled": "true",
    # From this size on rows are sent as files, not within a plan: see connect/session.py.
    "spark.sql.session.localRelationCacheThreshold": str(1 << 18),
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # As for a JVM of ours: files are the same wherever Spark runs.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    # As for a JVM of ours; without the cache, which may have the one with checksums.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
"""The settings of sessions on a server, which safety and the meaning of queries depend on."""

LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.pools.name = org.apache.spark.scheduler.FairSchedulableBuilder
logger.pools.level = error
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.attempts.name = org.apache.spark.scheduler.TaskSetManager
logger.attempts.level = off
logger.writer.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.writer.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
logger.code.name = org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
logger.code.level = off
logger.stages.name = org.apache.spark.sql.execution.WholeStageCodegenExec
logger.stages.level = off
logger.listeners.name = org.apache.spark.sql.util.ExecutionListenerBus
logger.listeners.level = off
"""
"""Logging of the JVM: warnings and errors to stderr, without those that need no action.

The warning about a missing file of pools needs none. The loggers that are off repeat why a job
failed, with rows and queries in it: the task that ran it tells that, without secrets. The last
lines are reported as the reason of the JVM's end, so they must matter.
"""


_DEFAULTS: Mapping[str, str] = {
    "spark.app.name": "fairlead",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The driver keeps the history of jobs even without the UI.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    # Spark also makes the text of each plan for the UI: the shortest format.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.catalogImplementation": "in-memory",
    # The default file system writes a checksum file for each file and forks for the mode of
    # both, which doubles the cost of a small batch. Our files are fsynced, and commits are checked.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Otherwise Spark lists more than 32 files in a separate job with a task for each, which takes
    # seven times as long.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # The fixed cost of a file when files are distributed to cores. With Spark's default of 4 MB, a
    # file of 31 MB is split into 17.5 and 13.5 MB, and the second core waits for the first.
    "spark.sql.files.openCostInBytes": "262144",
    # Above it, rows from the worker are sent as files instead of within the plan.
    "spark.sql.execution.arrow.localRelationThreshold": "100KB",
    # Pickled rows by default: Arrow needs pandas, and warns without it.
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    # Spark's default, INT96, is deprecated, has no statistics, and some readers lack it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Otherwise a small batch waits until all tasks of a concurrent large batch have started.
    "spark.scheduler.mode": "FAIR",
}
"""The defaults, which a user's settings override."""

_SECURED: Mapping[str, str] = {
    # Otherwise the ports of the driver and the block manager deserialise objects of any user of
    # the machine. A local driver creates its secret itself: it is in no file, command line or
    # environment. A cluster's secret is in the settings file, which only its owner can read.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.python.use.daemon": "true",
    "spark.python.task.killTimeout": "100ms",
}
"""Settings that override those of the user."""


_DAEMON = "fairlead.runtime.pipeline.engines.embedded.python_daemon"
"""What starts Python workers here; executors elsewhere do not have it."""


class SettingRefused(ValueError):  # noqa: N818  # says what happened to it
    """A `spark.conf.*` setting that an engine refuses."""


def is_cluster(master: str) -> bool:
    """Return whether a master's jobs run outside the driver, on a cluster or a server."""
    return master.startswith((STANDALONE, "k8s://", CONNECT)) or master == "yarn"


def is_connect(master: str) -> bool:
    """Return whether a master is a Spark Connect server."""
    return master.startswith(CONNECT)


def without_parameters(master: str) -> str:
    """Return a master for display, without the parameters of a server, which may be secrets."""
    if not is_connect(master):
        return master
    place = re.split(r"[;?#]", master, maxsplit=1)[0].removesuffix("/")
    return CONNECT + place.removeprefix(CONNECT).rpartition("@")[2]


def refuse_unsafe(conf: Mapping[str, str], master: str = "") -> None:
    """Raise `SettingRefused` for the first setting that the user must not set."""
    granted = OF_CLUSTERS if is_cluster(master) else frozenset[str]()
    for name in conf:
        if is_connect(master) and not name.startswith("spark.sql."):
            flaw = "a setting of the server, which fairlead does not start"
            raise SettingRefused(f"{name} cannot be set: it is {flaw}; remove spark.conf.{name}")
        if (reason := REFUSED.get(name)) and name not in granted:
            raise SettingRefused(f"{name} cannot be set: {reason}; remove spark.conf.{name}")
        if not name.startswith("spark."):
            raise SettingRefused(f"{name} is not a setting of Spark: their names begin with spark.")

    for name in _defined_properties(conf.get(JAVA_OPTIONS, "")):
        if reason := REFUSED.get(name):
            flaw = f"-D{name} cannot be set: {reason}; remove it from spark.conf.{JAVA_OPTIONS}"
            raise SettingRefused(flaw)


def _defined_properties(options: str) -> list[str]:
    try:
        split = shlex.split(options)
    except ValueError as error:
        raise SettingRefused(f"spark.conf.{JAVA_OPTIONS} cannot be read: {error}") from None
    return [each[2:].partition("=")[0] for each in split if each.startswith("-D")]


def settings(folder: Path, cores: int, conf: Mapping[str, str], master: str = "") -> dict[str, str]:
    """Return all settings of a driver with its files in `folder`; an empty master is local."""
    host = conf.get(HOST, "127.0.0.1") if master else "127.0.0.1"
    return {
        **_DEFAULTS,
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # The temporary files of executors, which are on the disks of other hosts.
        **({"spark.io.encryption.enabled": "true"} if master else {}),
        **SQL_AS_WRITTEN,
        BIND_ADDRESS: host,
        **conf,
        "spark.master": master or f"local[{cores}]",
        HOST: host,
        **({} if master else {BIND_ADDRESS: host, "spark.python.daemon.module": _DAEMON}),
        **_SECURED,
    }


def known_settings(conf: Mapping[str, str], master: str = "") -> dict[str, str] | None:
    """Return the settings of sessions but for Spark's own defaults, before there is a driver.

    None: they are not known, since they are a server's, or options of the JVM define some.
    """
    defined = _defined_properties(conf.get(JAVA_OPTIONS, ""))
    if is_connect(master) or any(name.startswith("spark.") for name in defined):
        return None
    return {**_DEFAULTS, **SQL_AS_WRITTEN, **conf}


def properties(conf: Mapping[str, str]) -> str:
    """Return settings as a Java properties file, since a command line is visible in `ps`."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in conf.items())


def _escaped(text: str) -> str:
    marks = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", " ": "\\ "}
    marks |= {mark: "\\" + mark for mark in "=:#!"}
    return "".join(marks.get(letter, letter) for letter in text)
