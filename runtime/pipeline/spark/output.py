"""What the JVM prints: written to a log of bounded size, its last lines kept for errors."""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

_LARGEST = 16 << 20
_LINES = 12
_LINE_LENGTH = 400
_FRAMES = (b"\tat ", b"\t... ")
_SECRET = re.compile(r"(?i)secret|password|passphrase|token|credential|key")
_HIDDEN = "********"


class JvmOutput:
    """Drains a pipe until it ends; never lets its writer wait for a disk."""

    def __init__(
        self,
        pipe: IO[bytes],
        log: Path,
        secrets: Iterable[str],
        hide: Callable[[str], str] = str,
    ) -> None:
        """Start draining into a log of at most 16 MiB, with one older log beside it.

        Secrets are hidden in `tail`, not in the log, which only its owner may read; what `hide`
        takes out of a line is in neither.
        """
        self.log = log
        self._hide = hide
        self._secrets = sorted(secrets, key=len, reverse=True)
        """What `tail` hides, the longest first, since one may hold another."""
        self._last: deque[str] = deque(maxlen=_LINES)
        """The last lines that are not frames of a stack trace."""
        self._thread = threading.Thread(
            target=self._drain, args=(pipe,), name="spark-output", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the pipe's end, so that `tail` is whole."""
        self._thread.join(seconds)

    def tail(self) -> str:
        """Return its last lines."""
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
            full = log.tell() + len(line) > _LARGEST
            if not full:
                log.write(line)
        if full:
            self.log.replace(self.log.with_name(self.log.name + ".1"))
            self.log.write_bytes(line)
            self.log.chmod(0o600)


def secrets_of(settings: Mapping[str, str]) -> list[str]:
    """Return the values of those settings whose names speak of secrets."""
    return [value for name, value in settings.items() if value and _SECRET.search(name)]
