"""Downloads of the artifacts of a list into a folder, and what of them makes each plugin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from .fetching import Repository, fetch_parts
from .lists import ARCHIVES, FileArtifact, ListedPlugin, MavenArtifact
from .refusals import PluginRefused
from .store import AddedPlugin, PluginPart, PluginStore, hash_file
from .unpacking import MOST_BYTES

_SILENT_S: Final = 60.0
"""How long a server may be silent."""
_PIECE: Final = 1 << 20

Repositories = Callable[[Sequence[str]], Repository]
"""Returns Maven's repositories, with some more URLs."""


@dataclass(frozen=True, slots=True)
class PluginLists:
    """Installs the plugins of lists into a store."""

    store: PluginStore
    repositories: Repositories

    def install(self, plugin: ListedPlugin) -> AddedPlugin:
        """Add a plugin, or replace one of its name that differs; raises `PluginRefused`."""
        with TemporaryDirectory(prefix="fairlead-plugin-") as folder:
            files = [each for each in plugin.artifacts if isinstance(each, FileArtifact)]
            jars = [each for each in plugin.artifacts if isinstance(each, MavenArtifact)]
            parts = [
                _download(each, Path(folder, str(number))) for number, each in enumerate(files)
            ]
            if jars:
                further = tuple(dict.fromkeys(each.repository for each in jars if each.repository))
                parts += fetch_parts(
                    self.repositories(further),
                    [each.coordinates for each in jars],
                    may_be_archive=False,
                )
            sources = [*(each.url for each in files), *(str(each.coordinates) for each in jars)]
            return self.store.add(plugin.name, parts, " ".join(sources), may_replace=True)


def _download(artifact: FileArtifact, path: Path) -> PluginPart:
    """Write an artifact to a new file; raises `PluginRefused`."""
    try:
        if artifact.url.startswith("file:"):
            with Path(unquote(urlsplit(artifact.url).path)).open("rb") as source:
                _copy(source, path)
        else:
            with urlopen(artifact.url, timeout=_SILENT_S) as source:  # noqa: S310  # checked before
                _copy(source, path)
        digest = hash_file(path)
    except (OSError, HTTPException) as error:
        raise PluginRefused(f"{artifact.url} cannot be read: {error}; nothing was added") from None
    if artifact.sha512 and digest != artifact.sha512:
        raise PluginRefused(
            f"the SHA-512 of {artifact.url} is {digest}, and should be {artifact.sha512}: it is"
            " damaged, or another file; nothing was added"
        )
    return PluginPart(path, artifact.name, is_archive=artifact.type in ARCHIVES)


def _copy(source: IO[bytes], path: Path) -> None:
    with path.open("xb") as target:
        left = MOST_BYTES
        while piece := source.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise PluginRefused(f"it has more than {MOST_BYTES >> 20} MiB")
            target.write(piece)
