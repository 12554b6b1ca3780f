"""One JVM with Spark's gateway in it, launched directly: no shell, no launcher, no orphan.

Spark's own launcher asks for a module that slim Java runtimes lack, and starts a second JVM
to do so. What it would put on the command line is here; the two `_PYSPARK` and `SPARK_CONNECT`
names in the environment are PySpark's private ones (pyspark.java_gateway, 4.3).
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import psutil

from .java import Java
from .output import JvmOutput, secrets_of
from .settings import LOG4J, properties

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
"""What Spark 4.3 reaches into (org.apache.spark.launcher.JavaModuleOptions)."""

_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Djava.net.preferIPv6Addresses=false",
    # A heap that is full once stays useless: end, and be started anew.
    "-XX:+ExitOnOutOfMemoryError",
    # Its file in /tmp would outlive a JVM that is killed.
    "-XX:-UsePerfData",
    "-XX:+UseSerialGC",
    # The optimising compiler, but ten times later: while everything runs for the first time
    # it takes a third of the processor; left out, big batches take twice as long.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

_FOLDER = "jvm-"
_POLL_SECONDS = 0.01


class JvmGateway(NamedTuple):
    """Where a JVM takes calls from Python, on loopback."""

    port: int
    secret: str

    def __repr__(self) -> str:
        """Keep the secret out of logs."""
        return f"JvmGateway(port={self.port})"


@dataclass(frozen=True, slots=True)
class JvmLaunch:
    """All that a JVM is started with."""

    java: Java
    heap: str
    """As Java takes it, such as `512m`."""

    settings: Mapping[str, str] = field(repr=False)
    """Spark's settings, complete."""


class JvmEnded(Exception):  # noqa: N818  # an event
    """The JVM ended before it could be used."""


class Jvm:
    """A running JVM, its folder, and the end it will come to."""

    def __init__(
        self,
        launch: JvmLaunch,
        folder: Path,
        log: Path,
        on_end: Callable[["Jvm"], None],
        hide: Callable[[str], str] = str,
    ) -> None:
        """Start it; returns at once. Raises `OSError`.

        It dies with the calling thread. `on_end` is called on a thread of its own, once. `hide`
        takes secrets out of each line that it says.
        """
        self.launch = launch
        self.folder = folder
        self.ended = threading.Event()
        self._why: str | None = None
        """Why it ended or is being ended, None while it is wanted."""
        self._on_end = on_end
        self._info = folder / "gateway"
        command, environ = _prepare(launch, folder, log, self._info)
        self._process = subprocess.Popen(  # noqa: S603  # our own command line
            command,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if self._process.stdout is None or self._process.stdin is None:
            raise AssertionError("Popen was asked for pipes")
        self._stdin = self._process.stdin
        self._output = JvmOutput(self._process.stdout, log, secrets_of(launch.settings), hide)
        threading.Thread(target=self._watch, name="spark-watch", daemon=True).start()

    def __str__(self) -> str:
        """Return `pid 4711, Java 17.0.15`."""
        return f"pid {self.pid}, Java {self.launch.java.version}"

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def why(self) -> str:
        """Why it ended, or how it came to be ended, with its last words."""
        words = self._output.tail()
        said = f"; last lines of {self._output.log}:\n{words}" if words else ""
        return f"{self._why or 'the JVM runs'}{said}"

    def gateway(self) -> JvmGateway:
        """Wait until it takes calls. Raises `JvmEnded`."""
        while not self._info.exists():
            if self.ended.wait(_POLL_SECONDS):
                raise JvmEnded(self.why)
        told = self._info.read_bytes()
        self._info.unlink()
        port, length = int.from_bytes(told[:4]), int.from_bytes(told[4:8])
        return JvmGateway(port, told[8 : 8 + length].decode())

    def kill(self, why: str) -> None:
        """End it and its Python workers now; the first reason given is the one told."""
        if self._process.returncode is not None:
            return  # its number may be another's by now
        self._why = self._why or why
        workers: list[psutil.Process] = []
        try:
            with suppress(psutil.Error):
                workers = psutil.Process(self.pid).children(recursive=True)
        finally:
            self._process.kill()
        for worker in workers:
            with suppress(psutil.Error):
                worker.kill()

    def stop(self, seconds: float, why: str) -> None:
        """Let it end by itself for so many seconds, then kill it."""
        self._why = self._why or why
        with suppress(OSError):
            self._stdin.close()  # the gateway ends the JVM when nobody can speak to it
        if not self.ended.wait(seconds):
            self.kill(why)
            self.ended.wait()

    def _watch(self) -> None:
        code = self._process.wait()
        self._output.wait(1)
        self._why = self._why or f"the JVM {_ending(code)}"
        with suppress(OSError):
            self._stdin.close()
        self.ended.set()
        self._on_end(self)


def new_folder(parent: Path) -> Path:
    """Make a folder for one JVM, which only its owner may read. Raises `OSError`."""
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=_FOLDER, dir=parent))


def sweep(parent: Path, keep: Path | None = None) -> None:
    """Remove the folders of JVMs that are gone, all but one."""
    for folder in parent.glob(f"{_FOLDER}*"):
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)


def _prepare(
    launch: JvmLaunch, folder: Path, log: Path, info: Path
) -> tuple[list[str], dict[str, str]]:
    for name in ("local", "warehouse", "tmp"):
        (folder / name).mkdir()
    (folder / "log4j2.properties").write_text(LOG4J)
    conf = folder / "spark.properties"
    conf.touch(0o600)
    conf.write_text(properties(launch.settings), "utf-8")
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.touch(0o600)
    spark = spark_home()
    tether = Path(__file__).with_name("tether.py")
    java = [str(launch.java.command), *_java_options(launch, folder, log), "-cp"]
    command = [
        *(sys.executable, "-I", "-S", str(tether), str(os.getpid())),
        *(*java, _class_path(launch.settings, spark), "org.apache.spark.deploy.SparkSubmit"),
        *("--properties-file", str(conf), "pyspark-shell"),
    ]
    return command, _environ(spark, folder, info)


def _java_options(launch: JvmLaunch, folder: Path, log: Path) -> list[str]:
    return [
        f"-Xmx{launch.heap}",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in JVM_OPENS),
        *_OPTIONS,
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        f"-XX:ErrorFile={log.with_name('jvm-crash-%p.log')}",
        *shlex.split(launch.settings.get("spark.driver.extraJavaOptions", "")),
    ]


def _class_path(settings: Mapping[str, str], spark: Path) -> str:
    extra = settings.get("spark.driver.extraClassPath")
    return os.pathsep.join([*([extra] if extra else []), str(spark / "jars" / "*")])


def _environ(spark: Path, folder: Path, info: Path) -> dict[str, str]:
    """Return the environment of the JVM, and so of its Python workers."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return ours | {
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
    }


def spark_home() -> Path:
    """Return where PySpark keeps Spark, without the cost of importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pyspark is not installed beside fairlead")
    return Path(spec.origin).parent


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"
