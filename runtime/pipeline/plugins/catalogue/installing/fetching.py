"""Fetching of plugins from Maven repositories: the maker's own archive, or jars."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from ...ivy import Coordinates, NotFetched
from .refusals import PluginRefused
from .store import PluginPart

MAKERS_ARCHIVES: Final = (
    ("plugin", "tar.gz"),
    ("plugin", "zip"),
    ("package", "tar.gz"),
    ("package", "zip"),
    ("all", "jar"),
)
"""Classifier and type of what makers publish for Connect, with all that their plugin needs."""


class Repository(Protocol):
    """Maven repositories, as `Ivy` reaches them."""

    def fetch(self, artifacts: Sequence[Coordinates], *, is_whole: bool) -> list[Path]:
        """Return the files of artifacts, and of all that they need; raises `NotFetched`."""
        ...


def fetch_parts(
    repository: Repository, artifacts: Sequence[Coordinates], *, may_be_archive: bool
) -> list[PluginPart]:
    """Return the files that make one plugin; raises `PluginRefused`.

    Of one artifact without a classifier that is the maker's archive, if it may be and there is one.
    All others come as jars with all that they need, in versions that suit all of them.
    """
    plain = [each for each in artifacts if not each.classifier and each.type == "jar"]
    try:
        is_alone = may_be_archive and len(artifacts) == 1 and bool(plain)
        if is_alone and (archive := _fetch_archive(repository, plain[0])):
            return [archive]
        named = [each for each in artifacts if each not in plain]
        parts = [
            PluginPart(path, is_archive=each.type != "jar")
            for each in named
            for path in repository.fetch([each], is_whole=False)
        ]
        jars = repository.fetch(plain, is_whole=True) if plain else []
    except NotFetched as error:
        raise PluginRefused(f"{error}; nothing was added") from None
    return [*parts, *map(PluginPart, jars)]


def _fetch_archive(repository: Repository, artifact: Coordinates) -> PluginPart | None:
    for classifier, kind in MAKERS_ARCHIVES:
        archive = replace(artifact, classifier=classifier, type=kind)
        try:
            (path,) = repository.fetch([archive], is_whole=False)
        except NotFetched:
            continue
        return PluginPart(path, is_archive=kind != "jar")
    return None
