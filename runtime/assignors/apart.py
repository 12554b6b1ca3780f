"""What sets the assignor process apart from the others of its node.

It leads a process group of its own, with a guard in it, so that what its assignors start ends
with it. What they print or log goes to a log of its own, and so does the stack of where it is
when it is told to abort (`SIGABRT`) or crashes. Its title tells what it is doing.
"""

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from setproctitle import getproctitle, setproctitle

from ..node.ending import DOING
from . import guard

LOGGER = logging.getLogger(__name__)

OWNER_ONLY = 0o600
FATAL = (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL)


def set_apart(log_file: Path) -> None:
    """Set this process apart."""
    os.setpgid(0, 0)
    _write_to(log_file)
    _log_to_stderr()
    _start_guard(log_file)
    for number in FATAL:
        signal.signal(number, signal.SIG_DFL)  # an actor's own handler would have it crash for ever
    faulthandler.enable(2)


@contextmanager
def doing(what: str) -> Generator[None]:
    """Tell in the title of this process what it does.

    Code of others may fork there. Its child would come back as well, as a second assignor
    process that answers to the same address: it goes no further.
    """
    usual, me = getproctitle(), os.getpid()
    setproctitle(f"{usual}{DOING}{what}")
    try:
        yield
    finally:
        if os.getpid() != me:
            os._exit(0)
        setproctitle(usual)


def _write_to(log_file: Path) -> None:
    """Have all that this process and its children print go to a file, or else nowhere."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        found = os.open(log_file, flags, OWNER_ONLY)
    except OSError:
        found = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(found, 1)
    os.dup2(found, 2)
    os.close(found)
    with suppress(OSError):
        os.write(2, f"-- process {os.getpid()}\n".encode())
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _log_to_stderr() -> None:
    """Have what assignors log go where they print, of which there is never too much."""
    to_stderr = logging.StreamHandler(sys.stderr)
    for handler in logging.root.handlers:
        to_stderr.setFormatter(handler.formatter)
    logging.root.handlers[:] = [to_stderr]


def _start_guard(log_file: Path) -> None:
    me = str(os.getpid())
    command = [sys.executable, "-I", "-S", str(guard.__file__), me, str(log_file)]
    try:
        os.posix_spawn(command[0], command, os.environ)
    except OSError as error:
        LOGGER.warning("no guard of the log and of what assignors start: %s", error)
