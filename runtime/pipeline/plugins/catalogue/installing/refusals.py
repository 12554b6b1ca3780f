"""Why a plugin is not installed, scanned or used, as an error or as a finding."""

from dataclasses import dataclass
from pathlib import Path


class PluginRefused(Exception):  # noqa: N818  # says what happened
    """A plugin cannot be used; the text says why, what was kept, and what to do."""


@dataclass(frozen=True, slots=True)
class PluginFlaw:
    """Something that is wrong with a folder or a jar of plugins."""

    location: Path
    """The folder of one plugin, its jar, or a folder of plugins."""
    text: str
    """What is wrong, and what to do."""
    others: tuple[Path, ...] = ()
    """Other plugins that it is about."""
