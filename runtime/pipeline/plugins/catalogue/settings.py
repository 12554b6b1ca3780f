"""The settings of a node that say which of Kafka Connect's plugins it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The settings of a node that say which plugins it has."""

    data_dir: Path
    path: Sequence[Path] = ()
    """Folders of plugins beside those that were added, as `plugin.path` names them."""
    repositories: Sequence[str] = ()
    """URLs of Maven repositories that are asked after Maven Central."""
    allow: Sequence[str] = ("*",)
    """Patterns of the names of classes that configs may name."""

    def allows(self, class_name: str) -> bool:
        """Return whether configs may name a class of a plugin."""
        return any(fnmatchcase(class_name, pattern) for pattern in self.allow)
