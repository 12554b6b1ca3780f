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

    def refusal(self, class_name: str) -> str:
        """Return why configs may not name a class that is here."""
        return (
            f"configs may not name {class_name} on this node, where plugin.allow is"
            f" {','.join(self.allow)}: add a pattern for it, and start the node again"
        )
