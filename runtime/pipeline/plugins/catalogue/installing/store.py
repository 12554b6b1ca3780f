"""The plugins that were added to a node: one folder each, below `<data.dir>/plugins`.

A folder has the plugin's files and `added.json`, which says where they came from and what they were
then. It is made beside its place under a name that begins with a dot, which nobody looks at, and
renamed: whoever dies meanwhile leaves no half of a plugin, and the next `add` clears that away.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from errno import EEXIST, ENOTEMPTY
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from ......events.log.files import make_directory, sync_path
from .connect_jars import leave_out_connects
from .jars import check_jar, jars_of
from .refusals import PluginRefused
from .unpacking import PluginFolder, copy_folder, unpack, unwrap

ADDED: Final = "added.json"
LONGEST_NAME: Final = 128
_NAME: Final = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._+-]{{0,{LONGEST_NAME - 1}}}")
_ARCHIVES: Final = (".tar.gz", ".tgz", ".zip")
UNFINISHED: Final = ".part-"
"""What the name of an unfinished folder begins with."""
_ABANDONED_S: Final = 3_600.0
"""After so many seconds an unfinished folder is that of a process that died."""


@dataclass(frozen=True, slots=True)
class PluginPart:
    """A folder, a jar or an archive that a plugin is made of."""

    path: Path
    name: str = ""
    """The name of the file in the plugin, unless it is an archive; empty: its own."""
    is_archive: bool | None = None
    """Whether it is unpacked; None: if its name ends as one of an archive."""

    @property
    def file_name(self) -> str:
        """The name that it has in a plugin."""
        return self.name or self.path.name

    def unpacks(self) -> bool:
        """Return whether it is an archive."""
        if self.is_archive is None:
            return self.file_name.endswith(_ARCHIVES)
        return self.is_archive


@dataclass(frozen=True, slots=True)
class AddedPlugin:
    """A plugin that was added, as it was then."""

    name: str
    source: str
    """Where it is from: Maven's coordinates, the name of a file, or a URL."""
    sha512: str
    """Of the archive or the jar that it is made of, in hex; "" of a folder, or of several."""
    content: str
    """The SHA-512 of the names and the SHA-512 of all its files, in hex."""
    added: str
    """When, in UTC."""
    files: dict[str, str]
    """The SHA-512 of each file, in hex, by its path in the plugin's folder."""
    left_out: list[str]
    """The jars that it had and Connect has itself."""


class PluginStore:
    """The folder of the plugins that were added."""

    def __init__(self, data_dir: Path) -> None:
        self.path: Final = data_dir / "plugins"

    def names(self) -> list[str]:
        """Return the names of the plugins, sorted; also of those without `added.json`."""
        if not self.path.is_dir():
            return []
        return sorted(each.name for each in self.path.iterdir() if is_plugin(each))

    def read(self, name: str) -> AddedPlugin | None:
        """Return what was written down of a plugin; None: nothing, or nothing legible."""
        try:
            return _parse((self.path / _checked(name) / ADDED).read_bytes())
        except (OSError, ValueError):
            return None

    def add(
        self,
        name: str,
        parts: Sequence[PluginPart],
        source: str,
        *,
        sha512: str = "",
        may_replace: bool = False,
    ) -> AddedPlugin:
        """Add a plugin that is made of some files; one that is there with them already stays.

        `sha512` is checked if there is one part. Raises `PluginRefused`; nothing was changed then.
        """
        _checked(name)
        try:
            make_directory(self.path)
            clear_unfinished(self.path)
            folder = Path(mkdtemp(prefix=UNFINISHED, dir=self.path))
        except OSError as error:
            raise PluginRefused(f"{self.path} cannot be written: {error.strerror}") from None
        try:
            plugin = _build(folder, name, parts, source, sha512.strip().lower())
            return self._take_over(folder, plugin, may_replace=may_replace)
        except OSError as error:
            text = f"{source}: {error.strerror or error}; nothing was added"
            raise PluginRefused(text) from None
        except PluginRefused as refused:
            raise PluginRefused(f"{source}: {refused}; nothing was added") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self, name: str) -> None:
        """Remove a plugin; raises `PluginRefused`."""
        folder = self.path / _checked(name)
        if not is_plugin(folder):
            known = ", ".join(self.names()) or "none"
            raise PluginRefused(f"there is no plugin {name} in {self.path}: there are {known}")
        self._discard(folder)

    def differences(self, name: str) -> list[str]:
        """Compare a plugin's files with those that were added; return each difference.

        All files are read. Raises `PluginRefused`, `OSError`.
        """
        plugin = self.read(name)
        folder = self.path / name
        if not is_plugin(folder):
            raise PluginRefused(f"there is no plugin {name} in {self.path}")
        if plugin is None:
            return [f"{folder / ADDED} is missing or damaged: add the plugin again"]
        present = _hash_files(folder)
        wanted = plugin.files
        return [
            *(f"{each} is missing" for each in sorted(wanted.keys() - present.keys())),
            *(f"{each} was not added" for each in sorted(present.keys() - wanted.keys())),
            *(
                f"{each} has another content than the file that was added"
                for each in sorted(wanted.keys() & present.keys())
                if wanted[each] != present[each]
            ),
        ]

    def _take_over(self, folder: Path, plugin: AddedPlugin, *, may_replace: bool) -> AddedPlugin:
        """Move a finished folder to its place."""
        place = self.path / plugin.name
        before = self.read(plugin.name)
        is_same = before is not None and before.content == plugin.content
        if before is not None and is_same and not self.differences(plugin.name):
            return before
        if place.exists() and may_replace:
            self._discard(place)
        try:
            folder.rename(place)
        except OSError as error:
            if error.errno not in {EEXIST, ENOTEMPTY}:
                raise
            raise PluginRefused(
                f"there is another plugin {plugin.name}: choose a name by --name, or replace it by"
                " --replace"
            ) from None
        sync_path(self.path)
        return plugin

    def _discard(self, place: Path) -> None:
        """Remove a folder, which is gone from its place at once."""
        try:
            shutil.rmtree(place.rename(Path(mkdtemp(prefix=UNFINISHED, dir=self.path))))
        except OSError as error:
            text = f"{place} cannot be removed: {error.strerror or error}"
            raise PluginRefused(text) from None


def clear_unfinished(folder: Path) -> None:
    """Remove unfinished folders that are an hour old: their processes have died."""
    for each in folder.glob(f"{UNFINISHED}*"):
        with suppress(FileNotFoundError):
            if time.time() - each.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(each, ignore_errors=True)


def is_plugin(folder: Path) -> bool:
    """Return whether something in a folder of plugins is one that was added."""
    return folder.is_dir() and not folder.name.startswith(".")


def name_of(file: str) -> str:
    """Return the name of the plugin that a file or folder makes, if no other is chosen."""
    name = file
    for suffix in (*_ARCHIVES, ".jar"):
        name = name.removesuffix(suffix)
    return name


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise PluginRefused(
            f"a plugin cannot be called {name!r}: up to {LONGEST_NAME} letters, digits, dots,"
            " hyphens and underscores will do"
        )
    return name


def _parse(content: bytes) -> AddedPlugin:
    """Return a plugin by its `added.json`; raises `ValueError`."""
    fields: Any = json.loads(content)
    try:
        plugin = AddedPlugin(**fields)
    except TypeError:
        raise ValueError("it has other members") from None
    if not isinstance(plugin.files, dict) or not isinstance(plugin.left_out, list):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError("it has members of other types")  # noqa: TRY004  # as for all that is read
    return plugin


def _build(
    folder: Path, name: str, parts: Sequence[PluginPart], source: str, sha512: str
) -> AddedPlugin:
    """Write a plugin into a new folder; raises `PluginRefused`, `OSError`."""
    target = PluginFolder(folder)
    hashes = [_write_part(target, part, is_alone=len(parts) == 1) for part in parts]
    digest = hashes[0] if len(hashes) == 1 else ""
    if sha512 and digest != sha512:
        raise PluginRefused(
            f"its SHA-512 is {digest}, and should be {sha512}: it is damaged, or another file"
            if digest
            else "a folder has no SHA-512: leave --sha512 out"
        )
    unwrap(folder)
    jars = jars_of(folder)
    if not jars:
        raise PluginRefused("it holds no jar, so it is no plugin of Connect")
    for each in jars:
        check_jar(each)
    left_out = leave_out_connects(folder)
    if len(left_out) == len(jars):
        raise PluginRefused(f"it holds only jars that Connect has itself ({', '.join(left_out)})")
    (folder / ADDED).unlink(missing_ok=True)  # that of another node
    files = _hash_files(folder, is_durable=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    plugin = AddedPlugin(name, source, digest, _content_of(files), now, files, left_out)
    (folder / ADDED).touch(0o600)
    (folder / ADDED).write_text(json.dumps(asdict(plugin), indent=1))
    sync_path(folder / ADDED)
    return plugin


def _write_part(target: PluginFolder, part: PluginPart, *, is_alone: bool) -> str:
    """Write a part into a plugin's folder; return its SHA-512, "" of a folder."""
    if part.path.is_dir():
        copy_folder(part.path, target)
        return ""
    with part.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").hexdigest()
        file.seek(0)
        if not part.unpacks():
            target.write(part.file_name, file)
        elif is_alone:
            unpack(file, target)
        else:
            inner = target.path / name_of(part.file_name)
            inner.mkdir(mode=0o700)
            within = replace(target, path=inner)
            unpack(file, within)
            target.bytes_left, target.entries_left = within.bytes_left, within.entries_left
            unwrap(inner)
    return digest


def _hash_files(folder: Path, *, is_durable: bool = False) -> dict[str, str]:
    return {
        each.relative_to(folder).as_posix(): hash_file(each, is_durable=is_durable)
        for each in _files_below(folder)
    }


def _files_below(folder: Path) -> Iterator[Path]:
    for place, _, files in os.walk(folder):
        yield from (Path(place, name) for name in files if Path(place, name) != folder / ADDED)


def hash_file(path: Path, *, is_durable: bool = False) -> str:
    """Return the SHA-512 of a file in hex; `is_durable`: it is on the disk then."""
    with path.open("rb") as file:
        if is_durable:
            os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha512").hexdigest()


def _content_of(files: dict[str, str]) -> str:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    return hashlib.sha512(lines.encode()).hexdigest()
