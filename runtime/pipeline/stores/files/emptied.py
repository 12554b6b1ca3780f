"""Notices that a folder lists nothing any more, as one whose file system is not mounted does."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

_EMPTIED: Final = (
    "there is no file to be seen in it, and files were read from it before: if nobody removed "
    "them, the file system that they are on is not mounted here; mount it again"
)


class EmptiedFolder:
    """Tells of a folder that lists nothing although files were read from it."""

    def __init__(self, root: Path, warn: Callable[[str], None]) -> None:
        self._root, self._warn = root, warn
        self._is_empty = False
        self._remark = ""

    def remark(self, *, is_empty: bool, was_read: Callable[[], bool]) -> str:
        """Return the remark, if there is one, and log it when it is new.

        `was_read` may take long: it is only called when the folder becomes empty.
        """
        if is_empty and not self._is_empty and was_read():
            self._remark = _EMPTIED
            self._warn(f"{self._root}: {_EMPTIED}")
        elif not is_empty:
            self._remark = ""
        self._is_empty = is_empty
        return self._remark
