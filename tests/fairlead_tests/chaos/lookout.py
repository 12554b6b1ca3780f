"""Polls an output like its readers: every visible file must be complete."""
# pyright: basic

import threading
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from fairlead.runtime.demo.output import visible_files

PAUSE_S = 0.05


class Lookout:
    """Opens each file below some folders once, as soon as it is visible."""

    def __init__(self, *roots: Path) -> None:
        self.broken: list[str] = []
        self.seen: dict[Path, tuple[int, int]] = {}
        self._roots = roots
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._look, name="lookout")
        self._thread.start()

    def stop(self) -> None:
        """Poll once more, then stop."""
        self._halt.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._halt.wait(PAUSE_S):
            self._look_once()
        self._look_once()

    def _look_once(self) -> None:
        for root in self._roots:
            for path in visible_files(root):
                if path not in self.seen:
                    self._open(path)

    def _open(self, path: Path) -> None:
        """Read a new file at once, and again after a moment: it must not have changed."""
        try:
            before = path.stat()
            self.seen[path] = before.st_ino, before.st_size
            _read(path)
        except (OSError, ValueError, pa.ArrowException) as error:
            self.broken.append(f"{time.strftime('%T')} {path}: {error}")

    def changed(self) -> list[Path]:
        """Return the files that have changed since they were first read."""
        return [
            path
            for path, before in self.seen.items()
            if not path.exists() or (path.stat().st_ino, path.stat().st_size) != before
        ]


def _read(path: Path) -> None:
    if path.suffix == ".parquet":
        parquet.read_table(path)
    elif not path.read_text().endswith("\n"):
        raise ValueError("it does not end with a line's end")
