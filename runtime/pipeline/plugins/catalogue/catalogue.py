"""The plugins of Kafka Connect that a node has: those that were added, and those of `plugin.path`.

As in Connect, `plugin.path` names folders of plugins: each folder, and each jar, in such a folder
is one plugin. Whatever cannot be used is left out and becomes a flaw with a text for the operator;
the others count. A catalogue is opened again before each start of a host: that costs some `stat`
of each jar, and a scan of each plugin that is new or has changed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .aliases import compute_aliases
from .installing.jars import JARS
from .installing.refusals import PluginFlaw, PluginRefused
from .installing.store import PluginStore, is_plugin
from .private_folders import flaw_in_ownership
from .scanning import ScanFolder, Scanner, ScanResult, fingerprint
from .settings import PluginSettings

_CONNECTORS: Final = frozenset({"source", "sink"})
UNKNOWN: Final = "unknown"
"""The version of a plugin whose maker's build did not fill it in."""


@dataclass(frozen=True, slots=True)
class ConnectPlugin:
    """A class of a plugin: a connector, a transformation, a converter and so on."""

    type: str
    """As in `/connector-plugins`: source, sink, transformation …"""
    class_name: str
    version: str
    """As the class says; `unknown` has no order."""
    location: Path
    """The plugin's folder, or its jar."""
    folder: Path
    """Where hosts find it: one of the catalogue's `paths`."""
    aliases: tuple[str, ...]
    """Its short names, none of which another class could have."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the class, and its short ones."""
        return self.class_name, *self.aliases

    @property
    def is_connector(self) -> bool:
        """Whether it is a connector."""
        return self.type in _CONNECTORS

    def answers_to(self, name: str) -> bool:
        """Return whether a name is that of the class, or one of its short names."""
        return name in self.names


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All plugins that can be used, and what is wrong with others."""

    plugins: tuple[ConnectPlugin, ...]
    """Sorted by class, version and place."""
    paths: tuple[Path, ...]
    """What a host has as `plugin.path`, to find all of them by service files alone."""
    flaws: tuple[PluginFlaw, ...]


def open_catalogue(settings: PluginSettings, scanner: Scanner) -> Catalogue:
    """Return the catalogue of a node.

    Plugins that are new or have changed are scanned; results of those that are gone are removed.
    """
    scans = ScanFolder(settings.data_dir)
    flaws: list[PluginFlaw] = []
    results: dict[str, ScanResult] = {}
    for location in _find_locations(settings, flaws):
        try:
            result = _result_of(location, scans, scanner)
        except PluginRefused as refused:
            flaws.append(PluginFlaw(location, str(refused)))
        except OSError as error:
            text = f"it cannot be read: {error.strerror or error}"
            flaws.append(PluginFlaw(location, text))
        else:
            flaws += (PluginFlaw(location, each) for each in result.flaws)
            results.setdefault(result.fingerprint, result)
    scans.prune()
    plugins = _list_plugins(scans, results.values())
    flaws += _find_doubles(plugins)
    paths = tuple(dict.fromkeys(each.folder for each in plugins))
    return Catalogue(plugins, paths, tuple(flaws))


def _result_of(location: Path, scans: ScanFolder, scanner: Scanner) -> ScanResult:
    """Return what a plugin has; raises `PluginRefused`, `OSError`."""
    if flaw := flaw_in_ownership(location):
        raise PluginRefused(flaw)
    mark = fingerprint(location)
    if flaw := flaw_in_ownership(scans.path / mark):
        raise PluginRefused(flaw)
    if result := scans.read(mark):
        return result
    return scans.scan(location, mark, scanner)


def _find_locations(settings: PluginSettings, flaws: list[PluginFlaw]) -> Iterator[Path]:
    """Yield the folder or jar of each plugin; what is no folder of plugins is added to `flaws`."""
    store = PluginStore(settings.data_dir)
    for name in store.names():
        yield store.path / name
    for folder in settings.path:
        try:
            inside = sorted(folder.iterdir()) if folder.is_dir() else [folder]
        except OSError as error:
            flaws.append(PluginFlaw(folder, f"it cannot be read: {error.strerror}"))
            continue
        jars = [each for each in inside if each.suffix.lower() in JARS and each.is_file()]
        if not folder.is_dir() and not jars:
            text = "plugin.path names it, and it is neither a folder of plugins nor a jar"
            flaws.append(PluginFlaw(folder, text))
        if len(jars) > 1:
            flaws.append(PluginFlaw(folder, _text_of_loose(folder, len(jars))))
        yield from jars
        yield from (each for each in inside if is_plugin(each))


def _text_of_loose(folder: Path, count: int) -> str:
    return (
        f"plugin.path names it, and it holds {count} jars, each of which is a plugin of its own"
        f" then: if they are one plugin, let plugin.path name {folder.parent}, or move them into a"
        " folder of their own below it"
    )


def _list_plugins(scans: ScanFolder, results: Iterable[ScanResult]) -> tuple[ConnectPlugin, ...]:
    results = [*results]
    named = {pair for result in results for pair in result.own}
    named |= {(each.type, each.class_name) for result in results for each in result.classes}
    aliases = compute_aliases(sorted(named))
    return tuple(
        sorted(
            (
                ConnectPlugin(
                    each.type,
                    each.class_name,
                    shown_version(each.version),
                    Path(result.location),
                    scans.path / result.fingerprint,
                    aliases.get(each.class_name, ()),
                )
                for result in results
                for each in result.classes
            ),
            key=lambda each: (each.class_name, each.type, each.version, each.location),
        )
    )


def shown_version(version: str) -> str:
    """Return the version of a plugin, `unknown` if its build left a placeholder unfilled."""
    return UNKNOWN if not version.strip() or "${" in version else version.strip()


def _find_doubles(plugins: Iterable[ConnectPlugin]) -> Iterator[PluginFlaw]:
    """Yield a flaw for each connector that two plugins have in one version.

    Transformations and converters are left out: makers ship theirs with each of their connectors.
    """
    places: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for each in plugins:
        if each.is_connector:
            places[each.class_name, each.version].append(each.location)
    for (name, version), locations in places.items():
        if len(locations) > 1:
            others = ", ".join(map(str, locations[1:]))
            yield PluginFlaw(
                locations[0],
                f"{name} {version} is in {others} as well: hosts take one of them, so remove the"
                " others",
                tuple(locations[1:]),
            )
