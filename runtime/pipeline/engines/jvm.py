"""One JVM with Spark's gateway, started directly, without a shell or Spark's launcher.

It dies with its parent. Its output goes to a log of limited size, and the last lines are part of
the reason of its end.
"""

import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import psutil

from .java import JvmLaunch, prepare

_FOLDER = "jvm-"
_POLL_SECONDS = 0.01
_LARGEST_LOG = 16 << 20
_LINES_KEPT, _LINE_LENGTH = 12, 400
_FRAMES = (b"\tat ", b"\t... ")
_SECRET = re.compile(r"(?i)secret|password|passphrase|token|credential|key")
_HIDDEN = "********"


class JvmGateway(NamedTuple):
    """The loopback port and the secret with which Python calls a JVM."""

    port: int
    secret: str

    def __repr__(self) -> str:
        """Keep the secret out of logs."""
        return f"JvmGateway(port={self.port})"


class JvmEnded(Exception):  # noqa: N818  # an event
    """The JVM ended before it could be used."""


class Jvm:
    """A JVM process with its folder and, once it has ended, the reason."""

    def __init__(
        self,
        launch: JvmLaunch,
        folder: Path,
        log: Path,
        on_end: Callable[["Jvm"], None],
        hide: Callable[[str], str] = str,
    ) -> None:
        """Start the JVM; returns at once. Raises `OSError`.

        It dies with the calling thread. `on_end` is called once, on a separate thread. `hide` masks
        secrets in each line of its output.
        """
        self.launch = launch
        self.folder = folder
        self.ended = threading.Event()
        self._why: str | None = None
        """Why it ended or is being ended; None while it should run."""
        self._on_end = on_end
        self._info = folder / "gateway"
        command, environ = prepare(launch, folder, log, self._info)
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
        """Why it ended, with the last lines of its output."""
        lines = self._output.tail()
        tail = f"; last lines of {self._output.log}:\n{lines}" if lines else ""
        return f"{self._why or 'the JVM runs'}{tail}"

    def gateway(self) -> JvmGateway:
        """Wait for the gateway and return its address; raises `JvmEnded`."""
        while not self._info.exists():
            if self.ended.wait(_POLL_SECONDS):
                raise JvmEnded(self.why)
        info = self._info.read_bytes()
        self._info.unlink()
        port, length = int.from_bytes(info[:4]), int.from_bytes(info[4:8])
        return JvmGateway(port, info[8 : 8 + length].decode())

    def kill(self, why: str) -> None:
        """Kill it and its Python workers now; the first reason is kept."""
        if self._process.returncode is not None:
            return  # another process may have its pid by now
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
        """Ask it to end, and kill it after the given time."""
        self._why = self._why or why
        with suppress(OSError):
            self._stdin.close()  # the gateway ends the JVM when its stdin is closed
        if not self.ended.wait(seconds):
            self.kill(why)
            self.ended.wait()

    def _watch(self) -> None:
        code = self._process.wait()
        self._output.wait(1)
        self._why = self._why or f"the JVM {_describe_exit(code)}"
        with suppress(OSError):
            self._stdin.close()
        self.ended.set()
        self._on_end(self)


class JvmOutput:
    """Reads a pipe until its end and writes it to a log; disk errors do not stop the reading."""

    def __init__(
        self,
        pipe: IO[bytes],
        log: Path,
        secrets: Iterable[str],
        hide: Callable[[str], str] = str,
    ) -> None:
        """Start reading into a log of at most 16 MiB, with one older log besides it.

        `secrets` are masked in `tail`, but not in the log, which only its owner may read. `hide`
        masks secrets in both.
        """
        self.log = log
        self._hide = hide
        self._secrets = sorted(secrets, key=len, reverse=True)
        """The secrets that `tail` masks, longest first, since one may contain another."""
        self._last: deque[str] = deque(maxlen=_LINES_KEPT)
        """The last lines that are not frames of a stack trace."""
        self._thread = threading.Thread(
            target=self._drain, args=(pipe,), name="spark-output", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the end of the pipe, so that `tail` is complete."""
        self._thread.join(seconds)

    def tail(self) -> str:
        """Return the last lines, with secrets masked."""
        text = "\n".join(list(self._last))
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            for read in iter(lambda: pipe.readline(1 << 16), b""):
                text = read.decode("utf-8", "backslashreplace")
                line = self._hide(text).encode()
                if not line.startswith(_FRAMES):
                    self._last.append(line.decode().rstrip()[:_LINE_LENGTH])
                with suppress(OSError):  # a full disk costs the log, not the engine
                    self._write(line)

    def _write(self, line: bytes) -> None:
        with self.log.open("ab") as log:
            full = log.tell() + len(line) > _LARGEST_LOG
            if not full:
                log.write(line)
        if full:
            self.log.replace(self.log.with_name(self.log.name + ".1"))
            self.log.write_bytes(line)
            self.log.chmod(0o600)


def new_folder(parent: Path) -> Path:
    """Create a folder for one JVM that only its owner can read; raises `OSError`."""
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=_FOLDER, dir=parent))


def sweep(parent: Path, keep: Path | None = None) -> None:
    """Remove the folders of former JVMs, except `keep`."""
    for folder in parent.glob(f"{_FOLDER}*"):
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)


def secrets_of(settings: Mapping[str, str]) -> list[str]:
    """Return the values of the settings whose names suggest a secret."""
    return [value for name, value in settings.items() if value and _SECRET.search(name)]


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"
