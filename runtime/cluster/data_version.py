"""Which version of fairlead wrote a data folder, and which one is installed beside a running node.

`run/version.json` says which version used the folder last, and the newest generation of records
that it writes. A version that does not know that generation would read the facts of its logs by
half, and drop what it does not know as it writes them anew: it refuses the folder before it
touches anything. Versions with the same generation may follow each other in either direction.

When another version is installed over a running node, what runs goes on with the code that it has
loaded; a process that starts anew gets the other version's. Those that are started as programs
(REST, the listener for Kafka's clients, the engine) compare the two, and refuse.
"""

import importlib.metadata
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ...events.catalogue import GENERATION
from ..pipeline.installed import DISTRIBUTION
from .node_files import read_node, write_private

FILE: Final = "version.json"
LOOK_SECONDS: Final = 10.0


class NewerDataError(Exception):
    """A newer version wrote a data folder; the message says which, and how to go on."""


class VersionSkewError(Exception):
    """The node that runs is of another version than the one that is installed."""


@dataclass(frozen=True, slots=True)
class DataVersion:
    """The version that used a data folder last, and the newest generation of its records."""

    version: str
    generation: int


def installed_version() -> str:
    """Return the version that is installed at this moment, "" amid an installation."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return ""


LOADED: Final = installed_version()
"""The version of the code that this process has loaded."""


def read_data_version(data_dir: Path) -> DataVersion | None:
    """Return which version used a data folder last; None if that is not known."""
    try:
        content = json.loads((data_dir / "run" / FILE).read_bytes())
        return DataVersion(str(content["version"]), int(content["generation"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def require_known_data(data_dir: Path) -> None:
    """Raise `NewerDataError` if the folder may have records that this version does not know."""
    last = read_data_version(data_dir)
    if last is not None and last.generation > GENERATION:
        raise NewerDataError(
            f"{data_dir} was last used by fairlead {last.version} (records of generation"
            f" {last.generation}), and this is fairlead {LOADED}, which knows them up to"
            f" {GENERATION}: nothing was changed. Run {last.version} or a newer version again; or,"
            " to go back, put the backup in place that was made before the upgrade"
            " (`fairlead docs upgrade`)"
        )


def note_data_version(data_dir: Path) -> None:
    """Write down that this version uses a data folder, before any of its logs is written."""
    own = DataVersion(LOADED, GENERATION)
    if read_data_version(data_dir) != own:
        content = json.dumps(asdict(own)).encode()
        write_private(data_dir / "run" / FILE, content, is_durable=True)


def require_version_of_node(data_dir: Path) -> None:
    """Raise `VersionSkewError` if this process is of another version than its running node."""
    node = read_node(data_dir / "run")
    if node is not None and node.is_alive() and node.version not in {"", LOADED}:
        raise VersionSkewError(
            f"{describe_skew(node.version, LOADED)}; this process did not start, the others go on"
        )


def describe_skew(running: str, installed: str) -> str:
    """Return the remedy where another version is installed than the one that runs."""
    return (
        f"the node runs fairlead {running}, and {installed} was installed over it: restart the"
        " node (`fairlead down`, `fairlead up`)"
    )


class InstalledVersion:
    """Looks now and then whether another version was installed over a running node."""

    def __init__(self) -> None:
        self._look_at = 0.0
        """When to look next, in monotonic seconds."""
        self.skew = ""
        """What to do, if another version is installed; else empty."""

    def look(self) -> bool:
        """Look, if it is time; return whether another version has just been found."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + LOOK_SECONDS
        installed, before = installed_version(), self.skew
        self.skew = describe_skew(LOADED, installed) if installed not in {"", LOADED} else ""
        return bool(self.skew) and self.skew != before
