"""Scanning of one plugin: which classes it has, so that hosts need not look for them again.

Kafka finds the plugins in a folder by loading all of its classes, which takes seconds and hundreds
of MiB, or by the service files in its jars, which takes neither; but not every maker writes such
files. So a plugin is scanned once, in a process that ends, and what was found is kept in a folder
that is named by a fingerprint of its jars:

- `plugins.json`: the plugin's place, its classes, and what is wrong with it;
- `NAME/`: links to the plugin's jars, and one jar with the service files that they lack.

A host that gets this folder as its `plugin.path` finds the same plugins by service files alone
(KIP-898). The folder is made under another name and renamed. Two processes may scan the same
plugin: the folder of the first one stays.
"""

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple, Protocol

from .....events.log.files import make_directory
from .installing.jars import JARS, SERVICES, jars_of, opened_jar, release_of
from .installing.refusals import PluginRefused
from .installing.store import UNFINISHED, clear_unfinished

SCANS: Final = "plugin-catalogue"
"""The folder of all results, in the data folder."""
RESULT: Final = "plugins.json"
SHIM: Final = "connect-plugin-path-shim.jar"
"""The jar with the missing service files; named as that of `connect-plugin-path`."""
_FORMAT: Final = 1
"""Part of each fingerprint: raised whenever results of older versions do not suffice."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class ScannedClass(NamedTuple):
    """A plugin's class as Kafka's scanner finds it."""

    type: str
    class_name: str
    version: str
    service: str
    """The interface or base class that a service file is named by."""
    is_declared: bool
    """Whether a service file of the plugin has it."""


class Scanner(Protocol):
    """Scans plugins, each in a process that ends."""

    @property
    def java_release(self) -> int:
        """The release of its Java, such as 17."""
        ...

    @property
    def own(self) -> Collection[tuple[str, str]]:
        """Type and class of Connect's own plugins, whose names make aliases ambiguous."""
        ...

    def scan(self, folder: Path) -> Sequence[ScannedClass]:
        """Return the classes of the plugin in a folder; raises `PluginRefused`."""
        ...


@dataclass(frozen=True, slots=True)
class NoScanner:
    """Stands where no plugin can be scanned now: only those that were scanned before count."""

    why: str
    java_release: int = 0
    own: Sequence[tuple[str, str]] = ()

    def scan(self, folder: Path) -> Sequence[ScannedClass]:
        """Raise `PluginRefused`."""
        raise PluginRefused(f"{folder.name} has not been scanned yet: {self.why}")


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The classes of one plugin."""

    location: str
    """The plugin's folder, or its jar."""
    fingerprint: str
    classes: list[ScannedClass]
    own: list[tuple[str, str]]
    """The scanner's `own`."""
    flaws: list[str]


def fingerprint(location: Path) -> str:
    """Return what changes when a plugin's jars change: names, sizes and times; raises `OSError`."""
    digest = hashlib.sha256(f"{_FORMAT}\0{location.resolve()}\0".encode())
    for each in jars_of(location):
        status = each.stat()
        digest.update(f"{each}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:40]


class ScanFolder:
    """The folder of the results of all scans."""

    def __init__(self, data_dir: Path) -> None:
        self.path: Final = data_dir / SCANS

    def read(self, mark: str) -> ScanResult | None:
        """Return a result by its fingerprint; None: there is none, or it is not legible."""
        with suppress(OSError, ValueError):
            return _parse((self.path / mark / RESULT).read_bytes())
        return None

    def scan(self, location: Path, mark: str, scanner: Scanner) -> ScanResult:
        """Scan a plugin, keep the result and return it; raises `PluginRefused`, `OSError`."""
        make_directory(self.path)
        folder = Path(mkdtemp(prefix=UNFINISHED, dir=self.path))
        try:
            result = _scan_into(folder, location, mark, scanner)
            self._keep(folder, mark)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    def prune(self) -> None:
        """Remove the results of plugins that are gone or have changed."""
        clear_unfinished(self.path)
        for each in self.path.glob("[!.]*"):
            result = self.read(each.name)
            with suppress(OSError):
                if result and fingerprint(Path(result.location)) == each.name:
                    continue
            shutil.rmtree(each, ignore_errors=True)

    def _keep(self, folder: Path, mark: str) -> None:
        place = self.path / mark
        if place.exists() and self.read(mark) is None:  # damaged
            shutil.rmtree(place)
        try:
            folder.rename(place)
        except OSError:
            if not place.exists():  # else another process has scanned it
                raise


def _scan_into(folder: Path, location: Path, mark: str, scanner: Scanner) -> ScanResult:
    jars = jars_of(location)
    if not jars:
        raise PluginRefused("it holds no jar; class files count only in jars")
    # Kafka takes a folder for a jar if it is called as one.
    linked = folder / (location.stem if location.suffix.lower() in JARS else location.name)
    linked.mkdir(mode=0o700)
    for number, jar in enumerate(jars):
        name = jar.name if not (linked / jar.name).is_symlink() else f"{number}-{jar.name}"
        (linked / name).symlink_to(jar.resolve())
    classes = [*scanner.scan(linked)]
    flaws = [*_find_too_new(jars, scanner.java_release)]
    if not classes:
        flaws.append("no plugin of Connect was found in it")
    _write_services(linked / SHIM, classes)
    result = ScanResult(str(location), mark, classes, sorted(scanner.own), flaws)
    descriptor = os.open(folder / RESULT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(result), file)
    return result


def _find_too_new(jars: Iterable[Path], java_release: int) -> Iterator[str]:
    """Yield a text for each jar that this Java cannot load; raises `PluginRefused`."""
    for path in jars:
        with opened_jar(path) as jar:
            needed = release_of(jar)
        if needed > java_release:
            yield (
                f"{path.name} needs Java {needed}, and this node has Java {java_release}: set"
                " JAVA_HOME to a newer one, or take an older version of the plugin"
            )


def _write_services(path: Path, classes: Iterable[ScannedClass]) -> None:
    """Write a jar of the service files that are missing; none if none is."""
    missing: dict[str, set[str]] = {}
    for each in classes:
        if not each.is_declared:
            missing.setdefault(each.service, set()).add(each.class_name)
    if not missing:
        return
    with zipfile.ZipFile(path, "x") as jar:
        for service, names in sorted(missing.items()):
            lines = "".join(f"{name}\n" for name in sorted(names))
            jar.writestr(zipfile.ZipInfo(f"{SERVICES}{service}", _EPOCH), lines)


def _parse(content: bytes) -> ScanResult:
    """Return a result by its JSON; raises `ValueError`."""
    fields: Any = json.loads(content)
    try:
        fields["classes"] = [ScannedClass(*each) for each in fields["classes"]]
        fields["own"] = [(kind, name) for kind, name in fields["own"]]
        return ScanResult(**fields)
    except (TypeError, KeyError):
        raise ValueError("it has other members") from None
