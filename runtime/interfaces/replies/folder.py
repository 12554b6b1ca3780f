"""The reply about the folder of connector files: how the connectors differ from what is in it."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Struct, structs

from .connectors import ConfigDiff
from .words import one_of

PLAN, APPLY = "plan", "apply"
ModeWord = Annotated[str, one_of([PLAN, APPLY])]
StateWord = Annotated[str, one_of(["in step", "differs", "failed", "missing", "reading"])]


class FileError(Struct, frozen=True):
    """A file, or a connector in one, that cannot be applied: what it had before stays."""

    file: str
    """Relative to the folder; empty: it is about the folder, or about no file."""
    connector: str
    """Empty: the file cannot be read."""
    message: str

    @property
    def line(self) -> str:
        """It in one line, with the file or the connector in front."""
        where = ", ".join(filter(None, (self.file, self.connector)))
        return f"{where}: {self.message}" if where else self.message


class FolderReport(Struct, frozen=True):
    """The folder of connector files, and what is to be done to be in step with it."""

    folder: str
    """The path of the folder."""
    mode: ModeWord
    """Whether what differs is only told (plan), or changed (apply)."""
    prunes: bool
    """Whether connectors are deleted whose files are gone."""
    state: StateWord = "reading"
    """Whether the connectors are as in the folder, and if not, what is in the way."""
    files: int = 0
    """How many files of connectors it has."""
    in_folder: int = 0
    """How many connectors its files have."""
    to_apply: list[ConfigDiff] = []
    """The connectors to create or change."""
    to_delete: list[str] = []
    """The connectors that came from the folder, and are gone from it."""
    drifted: list[str] = []
    """Those to change whose configs somebody else wrote last, by other means than the folder."""
    errors: list[FileError] = []
    """What cannot be read, or is refused."""

    @property
    def summary(self) -> str:
        """It in one line."""
        content = f"{_counted(self.in_folder, 'connector')} in {_counted(self.files, 'file')}"
        head = f"{self.folder}: {self.state}, {content}"
        parts = [
            f"{len(self.to_apply)} to create or change" if self.to_apply else "",
            f"{len(self.to_delete)} to delete" if self.to_delete else "",
            f"{len(self.drifted)} of them written by others" if self.drifted else "",
            _counted(len(self.errors), "error") if self.errors else "",
        ]
        return ", ".join([head, *filter(None, parts)])

    def limited_to(self, is_seen: Callable[[str], bool]) -> "FolderReport":
        """Return what a caller may see who sees these connectors alone."""
        return structs.replace(
            self,
            to_apply=[each for each in self.to_apply if is_seen(each.name)],
            to_delete=[*filter(is_seen, self.to_delete)],
            drifted=[*filter(is_seen, self.drifted)],
            errors=[each for each in self.errors if each.connector and is_seen(each.connector)],
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def no_folder() -> FolderReport | None:
    """Return that no folder is kept in step."""
    return None
