"""A tied child process whose output goes to a log, and the reason of its end.

Its output is read on a thread, without pause: a process whose pipe is full would stop. Each line
goes to a log of limited size, and the last lines are kept in memory, since they usually say why a
process ended. A second thread waits for the end and reports it once.

Whoever ends the process says why; the first reason counts. If nobody did, it is the exit code. The
process gets a pipe as its stdin, and most programs that serve others end when it is closed: `stop`
does that, and kills a process that is too slow. `kill` ends its descendants as well.
"""

import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from ...actors.tether import tied
from .guard import rotate_log

_LINES_KEPT, _LINE_LENGTH = 12, 400
_FRAMES = (b"\tat ", b"\t... ")
"""The beginnings of lines with a frame of Java's stack traces."""
_TAIL_SECONDS = 1.0
"""How long the end of a process waits for the end of its output."""


class LoggedProcess:
    """A process with its log and, once it has ended, the reason."""

    def __init__(
        self,
        program: Sequence[str],
        environ: Mapping[str, str],
        output: "ProcessOutput",
        kind: str,
        on_end: Callable[[Any], None],
    ) -> None:
        """Start the program; returns at once. Raises `OSError`.

        It dies with the calling thread. `on_end` is called once with this object, on a separate
        thread. `kind` names the process in the reason of its end, such as `the JVM`.
        """
        self.ended = threading.Event()
        self._kind = kind
        self._why: str | None = None
        """Why it ended or is being ended; None while it should run."""
        self._on_end = on_end
        self._process = subprocess.Popen(  # noqa: S603  # our own command line
            tied(program),
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if self._process.stdout is None or self._process.stdin is None:
            raise AssertionError("Popen was asked for pipes")
        self._stdin = self._process.stdin
        self._output = output
        output.read(self._process.stdout)
        threading.Thread(target=self._watch, name="process-watch", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def why(self) -> str:
        """Why it ended, with the last lines of its output."""
        lines = self._output.tail()
        tail = f"; last lines of {self._output.log}:\n{lines}" if lines else ""
        return f"{self._why or f'{self._kind} runs'}{tail}"

    def kill(self, why: str) -> None:
        """Kill it and its descendants now; the first reason is kept."""
        if self._process.returncode is not None:
            return  # another process may have its pid by now
        self._why = self._why or why
        descendants: list[psutil.Process] = []
        try:
            with suppress(psutil.Error):
                descendants = psutil.Process(self.pid).children(recursive=True)
        finally:
            self._process.kill()
        for each in descendants:
            with suppress(psutil.Error):
                each.kill()

    def stop(self, seconds: float, why: str) -> None:
        """Close its stdin so that it ends, and kill it after the given time."""
        self._why = self._why or why
        with suppress(OSError):
            self._stdin.close()
        if not self.ended.wait(seconds):
            self.kill(why)
            self.ended.wait()

    def _watch(self) -> None:
        code = self._process.wait()
        self._output.wait(_TAIL_SECONDS)
        self._why = self._why or f"{self._kind} {_describe_exit(code)}"
        with suppress(OSError):
            self._stdin.close()
        self.ended.set()
        self._on_end(self)


class ProcessOutput:
    """Reads a pipe until its end and writes it to a log; disk errors do not stop the reading."""

    def __init__(
        self,
        log: Path,
        hide: Callable[[str], str] = str,
        hide_in_tail: Callable[[str], str] = str,
        log_of: Callable[[str], Path | None] = lambda _: None,
    ) -> None:
        """Write to a log of at most 16 MiB, with one older log besides it.

        `hide` masks secrets in each line; `hide_in_tail` masks more of them in what others than
        the owner of the log may read. `log_of` returns a second log for a line, or None.
        """
        self.log = log
        self._log_of = log_of
        self._hide = hide
        self._hide_in_tail = hide_in_tail
        self._last: deque[str] = deque(maxlen=_LINES_KEPT)
        """The last lines that are not frames of a stack trace."""
        self._thread = threading.Thread()

    def read(self, pipe: IO[bytes]) -> None:
        """Start to read, on a separate thread."""
        self._thread = threading.Thread(
            target=self._drain, args=(pipe,), name="process-output", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the end of the pipe, so that `tail` is complete."""
        self._thread.join(seconds)

    def tail(self) -> str:
        """Return the last lines, with secrets masked."""
        return self._hide_in_tail("\n".join(list(self._last)))

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            for read in iter(lambda: pipe.readline(1 << 16), b""):
                line = self._hide(read.decode("utf-8", "backslashreplace")).encode()
                if not line.startswith(_FRAMES):
                    self._last.append(line.decode().rstrip()[:_LINE_LENGTH])
                for path in (self.log, self._log_of(line.decode())):
                    if path is not None:
                        _append(path, line)


def _append(path: Path, line: bytes) -> None:
    with suppress(OSError):  # a full disk costs the log, not the process
        with path.open("ab") as log:
            log.write(line)
        rotate_log(path)


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"
