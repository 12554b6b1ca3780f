"""Spark's settings: ours, the user's over them, and the few that are not the user's to set."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

STANDALONE = "spark://"
"""How the address of a master of Spark's own kind of cluster begins."""
CONNECT = "sc://"
"""How the address of a Spark Connect server begins."""
AUTH_SECRET = "spark.authenticate.secret"  # noqa: S105  # its name
HOST = "spark.driver.host"
BIND_ADDRESS = "spark.driver.bindAddress"

_LOOPBACK = "a driver that jobs can be sent to listens on loopback only"
_ONE_DRIVER = "the node's own setting spark.master says where Spark runs"
_CANCEL = "the Python code of a cancelled job must end within 0.2 s"
_STRANGERS = "its ports are for those only who hold the secret that each JVM makes for itself"
_INTERPRETER = "Python code must run where fairlead itself is installed"

REFUSED: Mapping[str, str] = {
    BIND_ADDRESS: _LOOPBACK,
    HOST: _LOOPBACK,
    "spark.api.mode": _ONE_DRIVER,
    "spark.master": _ONE_DRIVER,
    "spark.remote": _ONE_DRIVER,
    "spark.submit.deployMode": _ONE_DRIVER,
    "spark.authenticate": _STRANGERS,
    AUTH_SECRET: _STRANGERS,
    "spark.authenticate.secret.file": _STRANGERS,
    "spark.authenticate.secret.driver.file": _STRANGERS,
    "spark.network.crypto.enabled": _STRANGERS,
    "spark.network.crypto.saslFallback": _STRANGERS,
    "spark.python.task.killTimeout": _CANCEL,
    "spark.python.use.daemon": _CANCEL,
    "spark.pyspark.driver.python": _INTERPRETER,
    "spark.pyspark.python": _INTERPRETER,
    "spark.local.dir": "it lies in the worker's folder, which is removed when the engine closes",
}
"""Settings that safety rests on, each with the reason why a user cannot have them."""

OF_CLUSTERS = frozenset({AUTH_SECRET, HOST, BIND_ADDRESS})
"""Those of them that a driver of a cluster needs: its executors are elsewhere."""

_WORDLESS = "rows would be missing without a word: errors.tolerance=all counts and keeps them"
_COMMITS = "what makes a batch count once rests on it"

_OF_NO_CONNECTOR: Mapping[str, str] = {
    "spark.sql.variable.substitute": "queries would read the node's environment and settings",
    "spark.sql.files.ignoreCorruptFiles": _WORDLESS,
    "spark.sql.files.ignoreMissingFiles": _WORDLESS,
    "spark.sql.parquet.output.committer.class": _COMMITS,
    "spark.sql.sources.commitProtocolClass": _COMMITS,
    "spark.sql.sources.outputCommitterClass": _COMMITS,
    "spark.sql.sources.partitionOverwriteMode": _COMMITS,
}

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

SQL_MEANINGS = (
    "spark.sql.ansi.",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.",
    "spark.sql.variable.",
)
"""What the names of settings begin with that change what a query means."""

SQL_AS_WRITTEN: Mapping[str, str] = {"spark.sql.variable.substitute": "false"}
"""Else `${env:X}`, `${system:x}` and `${spark.x}` in a query become what is set on the node."""

OF_SESSIONS: Mapping[str, str] = {
    **SQL_AS_WRITTEN,
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.connect.serverStacktrace.enabled": "true",
    # From here on rows are sent as files, not within a plan: see connect/sent_rows.py.
    "spark.sql.session.localRelationCacheThreshold": str(1 << 18),
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    # As for a JVM of ours; and not one that is there already, with checksums.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
"""What sessions have on a server that others have set up: what safety and meaning rest on."""

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
"""
"""Logging of the JVM: warnings and worse, to its error output, as far as they ask for something.

Pools for all connectors need no file, and the last lines are told as the reason of the JVM's end.
"""


_DEFAULTS: Mapping[str, str] = {
    "spark.app.name": "fairlead",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The driver remembers what it ran even without a page to show it on.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    # The text of each plan is made for that page, too: the shortest one there is.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.catalogImplementation": "in-memory",
    # Its peer with checksums writes two files for each, and forks twice for their modes: that
    # doubles what a small batch costs. What counts is fsynced, and its commit is checked.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Else more than 32 files are listed by a job of their own, a task for each: it takes seven
    # times as long.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # What a file counts for beside its size when files are dealt to cores. Spark's own 4 MB has
    # one of 31 MB cut into 17.5 and 13.5, and the second core wait for the first.
    "spark.sql.files.openCostInBytes": "262144",
    # Above it, rows sent from the worker travel as files instead of inside the plan.
    "spark.sql.execution.arrow.localRelationThreshold": "100KB",
    # Pickled rows unless asked otherwise: Arrow ones need pandas, and complain without.
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    # Spark's own default, INT96, is deprecated, has no statistics, and not all readers take it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Else a small batch beside a large one waits until all parts of that have begun.
    "spark.scheduler.mode": "FAIR",
}
"""What a user's own settings go over."""

_SECURED: Mapping[str, str] = {
    # Else its driver and its blocks' ports deserialise what any user of the machine sends. A
    # local driver makes its secret itself: it is in no file, command line or environment. A
    # cluster's is in the file of its settings, for its owner only, and in no command line.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.python.use.daemon": "true",
    "spark.python.task.killTimeout": "100ms",
}
"""What nobody may set otherwise."""


class SettingRefused(ValueError):  # noqa: N818  # says what happened to it
    """A `spark.conf.*` setting that an engine cannot grant."""


def is_cluster(master: str) -> bool:
    """Tell whether the jobs of a master's drivers run elsewhere than in themselves."""
    return master.startswith((STANDALONE, "k8s://", CONNECT)) or master == "yarn"


def is_connect(master: str) -> bool:
    """Tell whether a server of Spark Connect runs the jobs of a master."""
    return master.startswith(CONNECT)


def without_parameters(master: str) -> str:
    """Return a master as it may be told: those of a server's address may be secrets."""
    if not is_connect(master):
        return master
    place = re.split(r"[;?#]", master, maxsplit=1)[0].removesuffix("/")
    return CONNECT + place.removeprefix(CONNECT).rpartition("@")[2]


def refuse_unsafe(conf: Mapping[str, str], master: str = "") -> None:
    """Raise `SettingRefused` for the first setting that is not the user's to set."""
    granted = OF_CLUSTERS if is_cluster(master) else frozenset[str]()
    for name in conf:
        if is_connect(master) and not name.startswith("spark.sql."):
            told = "the server's own to have, which is started by others"
            raise SettingRefused(f"{name} cannot be set: it is {told}; remove spark.conf.{name}")
        if (reason := REFUSED.get(name)) and name not in granted:
            raise SettingRefused(f"{name} cannot be set: {reason}; remove spark.conf.{name}")
        if not name.startswith("spark."):
            raise SettingRefused(f"{name} is not a setting of Spark: their names begin with spark.")

    for name in _defined(conf.get(JAVA_OPTIONS, "")):
        if reason := REFUSED.get(name):
            told = f"-D{name} cannot be set: {reason}; remove it from spark.conf.{JAVA_OPTIONS}"
            raise SettingRefused(told)


def flaw_of_connector(name: str) -> str | None:
    """Return why a setting is no connector's to have for itself, as far as its name tells."""
    if not name.startswith("spark.sql."):
        return "only spark.sql.* can be a connector's own: the others are set on the node, for all"
    return _OF_NO_CONNECTOR.get(name)


def _defined(options: str) -> list[str]:
    try:
        split = shlex.split(options)
    except ValueError as error:
        raise SettingRefused(f"spark.conf.{JAVA_OPTIONS} cannot be read: {error}") from None
    return [each[2:].partition("=")[0] for each in split if each.startswith("-D")]


def settings(folder: Path, cores: int, conf: Mapping[str, str], master: str = "") -> dict[str, str]:
    """Return all settings of a driver that keeps its files in a folder; `master`: of a cluster."""
    host = conf.get(HOST, "127.0.0.1") if master else "127.0.0.1"
    return {
        **_DEFAULTS,
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # What executors write beside the rows of a batch: theirs are other machines' disks.
        **({"spark.io.encryption.enabled": "true"} if master else {}),
        **SQL_AS_WRITTEN,
        BIND_ADDRESS: host,
        **conf,
        "spark.master": master or f"local[{cores}]",
        HOST: host,
        **({} if master else {BIND_ADDRESS: host}),
        **_SECURED,
    }


def properties(conf: Mapping[str, str]) -> str:
    """Write settings as a file of Java properties, which keeps them out of `ps`."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in conf.items())


def _escaped(text: str) -> str:
    marks = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", " ": "\\ "}
    marks |= {mark: "\\" + mark for mark in "=:#!"}
    return "".join(marks.get(letter, letter) for letter in text)
