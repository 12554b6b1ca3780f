"""The command line of Spark's JVM, and the class data archive that it may share.

Spark's own launcher needs a module that slim Java runtimes lack, and starts a second JVM, so this
module builds the command line itself. The variables `_PYSPARK_…` and `SPARK_CONNECT_MODE` are
private to PySpark (pyspark.java_gateway, 4.1 to 4.3).
"""

import os
import shlex
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from ...processes.java import Java
from .settings import BIND_ADDRESS, JAVA_OPTIONS, LOG4J, properties

JVM_OPENS = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""The packages that Spark 4.1 to 4.3 accesses (org.apache.spark.launcher.JavaModuleOptions)."""

_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Djava.net.preferIPv6Addresses=false",
    # A JVM is unreliable once its heap was full: end it, and it is started again.
    "-XX:+ExitOnOutOfMemoryError",
    # Its file in /tmp would remain after a JVM is killed.
    "-XX:-UsePerfData",
    # It uses all cores: large batches take an eighth less time than with the serial collector.
    "-XX:+UseParallelGC",
    # The optimising compiler starts later than by default: 20 times for methods, 10 times for
    # loops. Otherwise it takes a third of the CPU time of the first hundreds of small batches.
    # Without it, large batches take twice as long; four times these numbers cost them a tenth.
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=12000",
    "-XX:Tier4CompileThreshold=300000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


SCRATCH = "tmp"
"""The folder for temporary files in a JVM's folder."""
HADOOP_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def archive_of(java: Java) -> Path:
    """Return the path of the class data archive of Spark's classes; it may not exist.

    It is in the Python environment, as the jars are: users who can write there can run code in a
    node anyway. Its name has the modification time of the jars, so that other jars get another one.
    Layers of a container's image keep whole seconds of it.
    """
    jars = int((spark_home() / "jars").stat().st_mtime)
    return Path(sys.prefix) / "share" / "fairlead" / f"spark-{java.version}-{jars}.jsa"


def sharing_options(java: Java) -> list[str]:
    """Return the JVM options that map the class data archive; none if it does not exist.

    If the archive does not match, for example because of a class path, the JVM ignores it.
    """
    archive = archive_of(java)
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"] if archive.exists() else []


@dataclass(frozen=True, slots=True)
class JvmLaunch:
    """The parameters of a JVM."""

    java: Java
    heap: str
    """In Java's notation, such as `512m`."""

    settings: Mapping[str, str] = field(repr=False)
    """All of Spark's settings."""


def prepare(
    launch: JvmLaunch, folder: Path, log: Path, info: Path
) -> tuple[list[str], dict[str, str]]:
    """Write the files for the start of a JVM; return its command line and its environment.

    The files are in `folder`. The JVM logs to `log` and writes the address of its gateway to
    `info`.
    """
    for name in ("local", "warehouse", SCRATCH):
        (folder / name).mkdir()
    (folder / "log4j2.properties").write_text(LOG4J)
    conf = folder / "spark.properties"
    conf.touch(0o600)
    conf.write_text(properties(launch.settings), "utf-8")
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.touch(0o600)
    spark = spark_home()
    java = [str(launch.java.command), *_java_options(launch, folder, log), "-cp"]
    program = [
        *(*java, _class_path(launch.settings, spark), "org.apache.spark.deploy.SparkSubmit"),
        *("--properties-file", str(conf), "pyspark-shell"),
    ]
    return program, _environ(launch.settings, spark, folder, info)


@contextmanager
def environment(names: Mapping[str, str]) -> Generator[None]:
    """Set environment variables of this process for the duration of the block."""
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def spark_home() -> Path:
    """Return Spark's folder in PySpark, without importing PySpark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pyspark is not installed beside fairlead")
    return Path(spec.origin).parent


def _java_options(launch: JvmLaunch, folder: Path, log: Path) -> list[str]:
    return [
        f"-Xmx{launch.heap}",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in JVM_OPENS),
        *_OPTIONS,
        *sharing_options(launch.java),
        f"-Djava.io.tmpdir={folder / SCRATCH}",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        f"-XX:ErrorFile={log.with_name('jvm-crash-%p.log')}",
        *shlex.split(launch.settings.get(JAVA_OPTIONS, "")),
    ]


def _class_path(settings: Mapping[str, str], spark: Path) -> str:
    extra = settings.get("spark.driver.extraClassPath")
    # The configuration of YARN and of the file systems, which Spark's scripts add as well.
    hadoop = map(os.environ.get, HADOOP_FOLDERS)
    return os.pathsep.join(filter(None, [extra, str(spark / "jars" / "*"), *hadoop]))


def _environ(settings: Mapping[str, str], spark: Path, folder: Path, info: Path) -> dict[str, str]:
    """Return the environment of the JVM, and so of its Python workers."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    if ours.get("LC_ALL") in {"C", "POSIX"}:  # Python decodes file names as UTF-8 there as well
        ours["LC_ALL"] = "C.UTF-8"
    return ours | {
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": settings[BIND_ADDRESS],
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
    }
