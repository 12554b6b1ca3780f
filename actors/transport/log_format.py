"""The one format of all log lines of a node, and where they go: to files, or to standard output.

A line is text or JSON. What a line is about (connector, task, epoch, worker) comes as attributes of
the log record, set with `extra=`, so that programs need not parse the message. So does the id of
the request that led to it; where a request is answered, all lines have it.
"""

import json
import logging
import os
import select
import stat
import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .log_file import FILES, LARGEST, LogFile, LogRateLimit

TEXT, JSON = "text", "json"
REQUEST: Final = "request"
request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered; "" for what nobody has asked for."""
FILE, STDOUT = "file", "stdout"
FIELDS: Final = ("group", "connector", "task", "epoch", "worker", REQUEST)
"""The attributes of a record that say what its line is about, in their order."""
WAIT_MS: Final = 1_000
"""How long a line waits for a reader of standard output; then lines are dropped until it reads."""
_LINE: Final = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


@dataclass(frozen=True, slots=True)
class LogOutput:
    """The logging of a process: the lowest level, the format, and the destination."""

    level: str = "INFO"
    format: str = TEXT
    to: str = FILE
    file_bytes: int = LARGEST
    """The size of a log file at which the next one begins."""
    files: int = FILES
    """How many files a log has at most."""

    def handler(self, path: Path, *, delay: bool = False) -> logging.Handler:
        """Return the handler of a process whose log file is `path`.

        With `delay` the file is opened with the first line. Raises `OSError` if it cannot be.
        """
        sizes = {"largest": self.file_bytes, "files": self.files}
        handler = StdoutLog() if self.to == STDOUT else LogFile(path, delay=delay, **sizes)
        handler.setFormatter(JsonLine() if self.format == JSON else TextLine(_LINE))
        return handler

    def begin(self, path: Path, *, is_terminal: bool = False) -> None:
        """Set up this process's logging; raises `OSError`.

        At a terminal its warnings are also shown on stderr, unless all goes to stdout, and the file
        is opened with the first line. A line that cannot be written is dropped without a word.
        """
        logging.raiseExceptions = False  # with a full disk, errors must not go to the terminal
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handlers = [self.handler(path, delay=is_terminal)]
        if is_terminal and self.to != STDOUT:
            handlers.append(shown := logging.StreamHandler())
            shown.setLevel(logging.WARNING)
            shown.setFormatter(logging.Formatter("%(message)s"))
        logging.basicConfig(level=self.level, handlers=handlers)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return a line's subject as fields; unknown ones are left out."""
    told = [(name, getattr(record, name, None)) for name in FIELDS]
    told[-1] = REQUEST, told[-1][1] or request_id.get()
    return {name: value for name, value in told if value not in {None, ""}}


class TextLine(logging.Formatter):
    """Appends the fields of a line to its message: `[connector=flights task=0 epoch=7]`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        """Return the first line of an entry; a traceback follows it."""
        told = " ".join(f"{name}={_word(value)}" for name, value in fields_of(record).items())
        line = super().formatMessage(record)
        return f"{line} [{told}]" if told else line


def _word(value: object) -> str:
    """Return a value as one word: a name may have blanks, or what looks like another line."""
    text = str(value)
    return text if text.isprintable() and not {" ", "]"} & {*text} else ascii(text)


class JsonLine(logging.Formatter):
    """Makes each entry one line with a JSON object; a traceback is its member `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return an entry; the time comes first, with the offset of the local time from UTC."""
        message = record.getMessage()
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        seconds = time.localtime(record.created)
        fields = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', seconds)}.{int(record.msecs):03d}"
            f"{time.strftime('%z', seconds)}",
            "level": record.levelname,
            "pid": record.process,
            "logger": record.name,
            **fields_of(record),
            "message": message,
        }
        return json.dumps(fields | ({"error": record.exc_text} if record.exc_text else {}))


class StdoutLog(logging.Handler):
    """Writes to standard output, each entry at once, and never waits for long for its reader.

    A container's log may be read slowly, or not at all: a member of the group must not lose its
    session over that. Entries that nobody takes are dropped.
    """

    def __init__(self, out: int | None = None) -> None:
        """Write to a descriptor, by default that of standard output."""
        super().__init__()
        self.addFilter(LogRateLimit())
        stdout = sys.__stdout__.fileno() if sys.__stdout__ else 1
        self._out = _open_unblocked(stdout if out is None else out)
        self._is_stuck = False
        """Whether the last entry was dropped: the next one does not wait at all."""
        self._is_cut = False
        """Whether the last entry was dropped after a part of it: the next one ends its line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry, or drop it."""
        try:
            entry = f"{self.format(record)}\n".encode(errors="backslashreplace")
            self._write(b"\n" + entry if self._is_cut else entry)
        except OSError:  # nobody reads any more
            self._is_stuck = True
        except Exception:  # noqa: BLE001  # a wrong format is for logging to tell
            self.handleError(record)

    def _write(self, left: bytes) -> None:
        while left:
            self._is_stuck = not self._is_writable()
            if self._is_stuck:
                return
            with suppress(BlockingIOError):  # another process has filled the pipe meanwhile
                left = left[os.write(self._out, left[: select.PIPE_BUF]) :]
                self._is_cut = bool(left)

    def _is_writable(self) -> bool:
        waiting = select.poll()
        waiting.register(self._out, select.POLLOUT)
        return bool(waiting.poll(0 if self._is_stuck else WAIT_MS))


def _open_unblocked(out: int) -> int:
    """Return a descriptor of the same pipe whose writes never wait; of other files `out` itself.

    Many processes write to one pipe, and any of them may fill it after another has seen room. The
    pipe is opened anew: a mode that is set on `out` would be that of all who share it.
    """
    if not stat.S_ISFIFO(os.fstat(out).st_mode):
        return out
    try:
        return os.open(f"/proc/self/fd/{out}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # the pipe is another user's, or has no reader
        return out
