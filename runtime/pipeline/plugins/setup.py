"""Fetches Kafka Connect's jars, and compiles the plugin host against them.

The host is Java source in this package. `set_up` fetches Connect and the Eclipse compiler, which
needs no JDK, and compiles. All of it is kept in the Python environment, under a name with the
version of Connect and a hash of the source; the link `connect` names the one in use. So a newer
fairlead, whose source differs, asks for `fairlead plugins setup` once more. It also does if a file
is gone or has another size than when it was written. All is made beside its place and moved there,
by one process at a time: what one that was killed has left is removed by the next.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from ...processes.java import Java
from ..engines.java import spark_home
from .ivy import Coordinates, Ivy

CONNECT: Final = "4.3.0"
"""The version of Kafka Connect that is fetched."""
OLDEST: Final = (4, 1)
NEWEST: Final = (4, 4)
"""The versions that the host was tried on."""
SET_UP: Final = "fairlead plugins setup"
_COMPILER: Final = Coordinates("org.eclipse.jdt", "ecj", "3.43.0")
_LOG4J: Final = "2.25.2"
"""The version that a download of Kafka has; its modules do not name one."""
_WANTED: Final = (
    Coordinates("org.apache.kafka", "connect-runtime", CONNECT),
    Coordinates("org.apache.kafka", "connect-json", CONNECT),
    Coordinates("org.apache.kafka", "connect-transforms", CONNECT),
    Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", _LOG4J),
    Coordinates("org.apache.logging.log4j", "log4j-core", _LOG4J),
)
_SOURCE: Final = Path(__file__).parent / "java"
_COMPILE_SECONDS: Final = 300.0
_RUNTIME_JAR = re.compile(r"connect-runtime-(\d+)\.(\d+)\.(\d+)([\w.-]*)\.jar")
_ARROW: Final = re.compile(
    r"arrow-(vector|format|memory-(core|netty|netty-buffer-patch))-\d|"
    r"flatbuffers-java-\d|netty-(buffer|common)-\d"
)
"""The names of the jars that write tables of Arrow."""
_IN_USE: Final = "connect"
_LOGGING: Final = "log4j2.xml"
_ABOUT: Final = "installation.json"
"""The version of Connect, the hash of the source, and the size of each other file, by its path."""
_UNFINISHED: Final = ".new-"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of all entries of our jars: equal source makes equal jars."""


class NotSetUp(Exception):  # noqa: N818  # says what is the case
    """A plugin host cannot run here; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The files that a plugin host runs on."""

    folder: Path
    connect: str
    """The version of Kafka Connect."""

    @property
    def class_path(self) -> list[Path]:
        """Return the jars that plugins may see: Connect's, and that which starts the host."""
        return [*sorted((self.folder / "connect").glob("*.jar")), self.folder / "boot.jar"]

    @property
    def host(self) -> list[Path]:
        """Return the jars of the host itself, which plugins do not see; Arrow's are PySpark's."""
        return [self.folder / "host.jar", *_arrow_jars()]

    @property
    def logging(self) -> Path:
        """Return the config of its log."""
        return self.folder / _LOGGING


def _arrow_jars() -> list[Path]:
    found = (spark_home() / "jars").glob("*.jar")
    return sorted(each for each in found if _ARROW.match(each.name))


def home() -> Path:
    """Return the folder of all installations: users who can write there can run code anyway."""
    return Path(sys.prefix) / "share" / "fairlead" / "plugins"


def find_installation() -> Installation:
    """Return the installation in use; raises `NotSetUp`."""
    try:
        folder = (home() / _IN_USE).resolve(strict=True)
        version, source, files = _read_about(folder)
    except (OSError, ValueError):
        raise NotSetUp(f"Kafka Connect's classes are not here yet: run `{SET_UP}`") from None
    if source != _hash_of_source():
        raise NotSetUp(
            f"fairlead is another one than when it was set up with Kafka Connect {version}: run"
            f" `{SET_UP}` again; plugins and connectors stay as they are"
        )
    if flaw := _flaw_in(folder, files):
        raise NotSetUp(
            f"Kafka Connect's classes are damaged ({folder}: {flaw}): run `{SET_UP}`, which makes"
            " them again; plugins and connectors stay as they are"
        )
    return Installation(folder, version)


def _read_about(folder: Path) -> tuple[str, str, Mapping[str, int]]:
    """Return what an installation says of itself; raises `OSError`, `ValueError`."""
    about: Any = json.loads((folder / _ABOUT).read_text())
    if not isinstance(about, dict) or about.keys() != {"connect", "source", "files"}:
        raise ValueError("it is of another version")
    members = cast("dict[str, Any]", about)
    return members["connect"], members["source"], members["files"]


def _flaw_in(folder: Path, files: Mapping[str, int]) -> str:
    """Return which file is not as it was written, by its size; "" if all are."""
    for name, size in files.items():
        try:
            found = (folder / name).stat().st_size
        except OSError as error:
            return f"{name}: {error.strerror}"
        if found != size:
            return f"{name} has {found} bytes instead of {size}"
    return ""


def set_up(java: Java, ivy: Ivy, tell: Callable[[str], None], libs: Path | None) -> Installation:
    """Fetch Kafka Connect, or take the jars of a download's `libs`, and compile the host.

    `tell` is given what takes a while. What is there already is only put in use. Raises `NotSetUp`,
    `NotFetched`, and `OSError` if the environment cannot be written.
    """
    version = CONNECT if libs is None else _version_in(libs)
    source = _hash_of_source()
    folder = home() / f"{_IN_USE}-{version}-{source[:12]}"
    with _alone():
        if not _is_whole(folder):
            with TemporaryDirectory(dir=home(), prefix=_UNFINISHED) as new:
                work = Path(new) / "installation"
                (work / "connect").mkdir(parents=True)
                tell(f"the jars of Kafka Connect {version} are {'copied' if libs else 'fetched'}")
                for jar in _jars(ivy, libs):
                    shutil.copyfile(jar, work / "connect" / jar.name)
                tell("the plugin host is compiled")
                _make_host(java, ivy, work)
                about = {"connect": version, "source": source, "files": _sizes(work)}
                (work / _ABOUT).write_text(json.dumps(about))
                if folder.exists():  # damaged
                    folder.rename(Path(new) / "damaged")
                work.rename(folder)
        _put_in_use(folder)
    return Installation(folder, version)


@contextmanager
def _alone() -> Generator[None]:
    """Keep other processes from setting up, and remove what one that was killed has left."""
    home().mkdir(parents=True, exist_ok=True)
    lock = os.open(home(), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for each in home().glob(f"{_UNFINISHED}*"):
            shutil.rmtree(each, ignore_errors=True)
        yield
    finally:
        os.close(lock)


def _make_host(java: Java, ivy: Ivy, folder: Path) -> None:
    (compiler,) = ivy.fetch([_COMPILER], is_whole=False)
    for name in ("boot", "host"):
        _compile(java, compiler, folder, name)
    shutil.copyfile(_SOURCE / _LOGGING, folder / _LOGGING)


def _is_whole(folder: Path) -> bool:
    with suppress(OSError, ValueError):
        return not _flaw_in(folder, _read_about(folder)[2])
    return False


def _sizes(folder: Path) -> dict[str, int]:
    return {str(each.relative_to(folder)): each.stat().st_size for each in _files(folder)}


def _put_in_use(folder: Path) -> None:
    link = home() / f".{_IN_USE}-link"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name)
    link.replace(home() / _IN_USE)


def _version_in(libs: Path) -> str:
    """Return the version of Connect in a folder of jars; raises `NotSetUp`."""
    try:
        found = [_RUNTIME_JAR.fullmatch(each.name) for each in libs.iterdir()]
    except OSError as error:
        raise NotSetUp(f"{libs} cannot be read: {error.strerror}") from None
    versions = [each for each in found if each]
    if len(versions) != 1:
        raise NotSetUp(
            f"{libs} has {len(versions)} jars named connect-runtime-VERSION.jar, and one is needed:"
            " --libs takes the folder `libs` of a download of Kafka"
        )
    major, minor, patch, rest = versions[0].groups()
    if not OLDEST <= (int(major), int(minor)) <= NEWEST:
        bounds = " to ".join(".".join(map(str, each)) for each in (OLDEST, NEWEST))
        raise NotSetUp(f"{libs} has Kafka Connect {major}.{minor}; {bounds} are supported")
    return f"{major}.{minor}.{patch}{rest}"


def _jars(ivy: Ivy, libs: Path | None) -> list[Path]:
    if libs is not None:
        return sorted(libs.glob("*.jar"))
    return ivy.fetch(_WANTED, is_whole=True)


def compile_path(folder: Path) -> list[Path]:
    """Return the jars against which the host is compiled: part of itself is on the class path."""
    boot = folder / "boot.jar"
    own = [boot] if boot.exists() else []
    return [*(folder / "connect").glob("*.jar"), *own, *_arrow_jars()]


def _compile(java: Java, compiler: Path, work: Path, name: str) -> None:
    """Compile a folder of the source to a jar, by the Eclipse compiler; raises `NotSetUp`."""
    classes = work / "classes"
    ran = subprocess.run(  # noqa: S603  # our own command line
        [
            *(str(java.command), "-XX:TieredStopAtLevel=1", "-jar", str(compiler)),
            *("-17", "-proc:none", "-nowarn", "-encoding", "UTF-8", "-d", str(classes)),
            *("-classpath", ":".join(map(str, compile_path(work)))),
            str(_SOURCE / name),
        ],
        capture_output=True,
        text=True,
        timeout=_COMPILE_SECONDS,
        check=False,
    )
    if ran.returncode:
        raise NotSetUp(f"the plugin host does not compile against these jars:\n{ran.stderr}")
    with ZipFile(work / f"{name}.jar", "w", ZIP_STORED) as jar:
        for path in _files(classes):
            jar.writestr(ZipInfo(str(path.relative_to(classes)), _EPOCH), path.read_bytes())
    shutil.rmtree(classes)


def _hash_of_source() -> str:
    found = hashlib.sha256()
    for path in _files(_SOURCE):
        found.update(f"{path.relative_to(_SOURCE)} {path.stat().st_size} ".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())
