"""Where the logs of the configured group lie, and a backup of both of them."""

import shutil
from enum import StrEnum
from pathlib import Path

from .....events.entries import logs
from .....events.log.errors import BackupError, NoLogError
from .....events.log.files import sync_path
from .....events.log.reader import LogReader
from .....events.log.tables import LogKind
from ..command.options import Here


class LogName(StrEnum):
    """The two logs of a group; the values are the names of their folders."""

    CONTROL = "control"
    OFFSETS = "offsets"

    @property
    def kind(self) -> LogKind:
        """What the log is known by in its own words."""
        return logs.CONTROL if self is LogName.CONTROL else logs.OFFSETS


class GroupFolder:
    """The folder of one group, `control` and `offsets` within."""

    def __init__(self, place: Here) -> None:
        config = place.configured()
        self.group_id = config.group_id
        self.path = config.group_folder

    def path_of(self, name: LogName) -> Path:
        """Return the folder of a log."""
        return self.path / name.value

    def open(self, name: LogName) -> LogReader:
        """Open a log for reading; raises `LogError`."""
        path = self.path_of(name)
        if not path.is_dir():
            raise NoLogError(
                f"there is no log at {path}: `fairlead up` makes it; or is it another --data-dir,"
                " or another group.id?"
            )
        return LogReader.open(path, self.group_id, name.kind)

    def back_up(self, target: Path) -> list[LogName]:
        """Copy what there is of both logs into a new folder, all or nothing; raises `LogError`.

        The offsets go first: what they rest on in the control log is then in its copy as well.
        """
        if target.exists():
            raise BackupError(
                f"{target} exists already; a backup never overwrites, choose a new name"
            )
        part = target.with_name(f".{target.name}.part")
        done: list[LogName] = []
        try:
            shutil.rmtree(part, ignore_errors=True)
            for name in (LogName.OFFSETS, LogName.CONTROL):
                if name is LogName.CONTROL or self.path_of(name).is_dir():
                    with self.open(name) as log:
                        log.backup(part / name.value)
                    done.append(name)
            part.rename(target)
            sync_path(target.parent)
        except OSError as error:
            raise BackupError(f"no backup at {target}: {error}; the logs are untouched") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return done
