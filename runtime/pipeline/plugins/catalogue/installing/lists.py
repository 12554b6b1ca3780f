"""Lists of plugins as Strimzi's `build.plugins` has them, and their artifacts.

    plugins:
      - name: debezium
        artifacts:
          - type: maven
            group: io.debezium
            artifact: debezium-connector-postgres
            version: 3.6.1.Final
          - type: zip
            url: https://example/transforms.zip
            sha512sum: 0123…

A plugin is a folder, into which its artifacts are put. The list may be the whole of a document, its
`build`, or that of a KafkaConnect resource (`spec.build`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, cast
from urllib.parse import urlsplit

from ...ivy import Coordinates
from .refusals import PluginRefused

MAVEN: Final = "maven"
ARCHIVES: Final = frozenset({"zip", "tgz"})
_TYPES: Final = frozenset({MAVEN, "jar", "other", *ARCHIVES})
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_FILE: Final = frozenset({"type", "url", "sha512sum", "fileName", "insecure"})
_OF_MAVEN: Final = frozenset({"type", "group", "artifact", "version", "repository", "insecure"})


@dataclass(frozen=True, slots=True)
class FileArtifact:
    """A file that a URL names."""

    type: str
    url: str
    sha512: str = ""
    """In lower case; "" only of a file of this machine."""
    file_name: str = ""
    """Its name in the plugin; "": that in the URL."""

    @property
    def name(self) -> str:
        """The name of the file, without a folder."""
        return self.file_name or PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True, slots=True)
class MavenArtifact:
    """A jar of a Maven repository, with all that it needs."""

    coordinates: Coordinates
    repository: str = ""
    """The URL of one more repository to ask."""


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    """A plugin of a list."""

    name: str
    artifacts: tuple[FileArtifact | MavenArtifact, ...]


def plugins_in(document: object) -> Sequence[object] | None:
    """Return the list of plugins in a document; None: it is something else."""
    holder = document
    for key in ("spec", "build"):
        if isinstance(holder, Mapping) and key in holder:
            holder = cast("Mapping[str, object]", holder)[key]
    if not isinstance(holder, Mapping) or "name" in holder or "config" in holder:
        return None
    plugins = cast("Mapping[str, object]", holder).get("plugins")
    return cast("Sequence[object]", plugins) if isinstance(plugins, list) else None


def parse_plugins(plugins: Sequence[object]) -> list[ListedPlugin]:
    """Return the plugins of a list; raises `PluginRefused`."""
    parsed = [_parse_plugin(each) for each in plugins]
    names = [each.name for each in parsed]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise PluginRefused(f"the list has two plugins called {twice}: nothing was changed")
    return parsed


def _parse_plugin(given: object) -> ListedPlugin:
    plugin = _mapping(given, "a plugin")
    name, artifacts = plugin.get("name"), plugin.get("artifacts")
    if not isinstance(name, str) or not isinstance(artifacts, list) or not artifacts:
        raise PluginRefused("each plugin of the list has a name and a list of artifacts")
    _refuse_others(plugin, frozenset({"name", "artifacts"}), name)
    return ListedPlugin(
        name, tuple(_parse_artifact(each, name) for each in cast("list[object]", artifacts))
    )


def _parse_artifact(given: object, plugin: str) -> FileArtifact | MavenArtifact:
    artifact = _mapping(given, f"an artifact of {plugin}")
    texts = {key: str(value) for key, value in artifact.items()}
    kind = texts.get("type", "")
    if kind not in _TYPES:
        known = ", ".join(sorted(_TYPES))
        raise PluginRefused(f"{plugin}: the type of an artifact is one of {known}, not {kind!r}")
    if texts.get("insecure", "false") != "false":
        raise PluginRefused(
            f"{plugin}: insecure is not supported, as what was changed on the way would run here:"
            " remove it, and give sha512sum"
        )
    if kind == MAVEN:
        _refuse_others(artifact, _OF_MAVEN, plugin)
        return _parse_maven(texts, plugin)
    _refuse_others(artifact, _OF_FILE, plugin)
    return _parse_file(kind, texts, plugin)


def _parse_maven(texts: Mapping[str, str], plugin: str) -> MavenArtifact:
    parts = [texts.get(key, "") for key in ("group", "artifact", "version")]
    try:
        coordinates = Coordinates.parse(":".join(parts))
    except ValueError:
        raise PluginRefused(
            f"{plugin}: an artifact of Maven has a group, an artifact and a version, not {parts}"
        ) from None
    return MavenArtifact(coordinates, texts.get("repository", ""))


def _parse_file(kind: str, texts: Mapping[str, str], plugin: str) -> FileArtifact:
    url, digest = texts.get("url", ""), texts.get("sha512sum", "").lower()
    if "@" in urlsplit(url).netloc:
        raise PluginRefused(
            f"{plugin}: the URL of an artifact has a user in it, who would be shown with the"
            " plugin: download the file and take it from there, or by `fairlead plugins add`"
        )
    if digest and not re.fullmatch(r"[0-9a-f]{128}", digest):
        raise PluginRefused(f"{plugin}: the sha512sum of {url} has no 128 digits")
    parts = urlsplit(url)
    is_https = parts.scheme == "https" and parts.hostname
    is_here = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if parts.scheme != "file" and not is_https and not is_here:
        raise PluginRefused(f"{plugin}: {url!r} is no https or file URL")
    if parts.scheme != "file" and not digest:
        raise PluginRefused(f"{plugin}: {url} needs a sha512sum, as anybody could have written it")
    artifact = FileArtifact(kind, url, digest, texts.get("fileName", ""))
    if artifact.name in {"", ".", ".."} or "/" in artifact.name:
        raise PluginRefused(f"{plugin}: {url} names no file, so fileName has to")
    return artifact


def _mapping(given: object, what: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise PluginRefused(f"{what} is no mapping: {given!r}")
    return cast("Mapping[str, Any]", given)


def _refuse_others(given: Mapping[str, object], known: frozenset[str], plugin: str) -> None:
    if strange := ", ".join(sorted(map(str, given.keys() - known))):
        raise PluginRefused(f"{plugin}: {strange} is not known here: remove it")
