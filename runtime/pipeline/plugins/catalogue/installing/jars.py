"""Reading of jars without a JVM: their classes, their service files, the Java that they need."""

import re
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .refusals import PluginRefused

JARS: Final = frozenset({".jar", ".zip"})
"""The endings of what Connect takes for a jar, in lower case (`PluginUtils.isArchive`)."""
SERVICES: Final = "META-INF/services/"
_CLASS: Final = ".class"
_OF_LATER_JAVA: Final = re.compile(r"META-INF/versions/\d+/")
_BEFORE_JAVA: Final = 44
"""What the version in a class file is ahead of Java's release by."""


def jars_of(location: Path) -> list[Path]:
    """Return the jars of a plugin, sorted: of a folder and all below it, or a jar itself.

    Links to folders are followed, as Connect follows them. Raises `OSError`.
    """
    if not location.is_dir():
        return [location]
    jars: list[Path] = []
    left, entered = [location], set[Path]()
    while left:
        folder = left.pop()
        real = folder.resolve()
        if real in entered:  # a link that leads back
            continue
        entered.add(real)
        for each in folder.iterdir():
            if each.is_dir():
                left.append(each)
            elif each.suffix.lower() in JARS and each.exists():
                jars.append(each)
    return sorted(jars)


@contextmanager
def opened_jar(path: Path) -> Generator[zipfile.ZipFile]:
    """Yield an open jar; raises `PluginRefused` if it is damaged, also while it is read."""
    try:
        with zipfile.ZipFile(path) as jar:
            yield jar
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise PluginRefused(f"{path.name} is damaged ({error}): fetch it again") from None
    except OSError as error:
        raise PluginRefused(f"{path.name} cannot be read: {error.strerror or error}") from None


def check_jar(path: Path) -> None:
    """Raise `PluginRefused` if a file in the jar is not as the jar's checksums have it."""
    with opened_jar(path) as jar:
        if name := jar.testzip():
            raise PluginRefused(f"{path.name} is damaged ({name} in it): fetch it again")


def classes_of(jar: zipfile.ZipFile) -> list[str]:
    """Return the paths of the classes in a jar, those for later Javas only once."""
    names = (each for each in jar.namelist() if each.endswith(_CLASS))
    return [*dict.fromkeys(_OF_LATER_JAVA.sub("", each) for each in names)]


def services_of(jar: zipfile.ZipFile) -> dict[str, set[str]]:
    """Return the classes that the service files of a jar name, by interface (`ServiceLoader`)."""
    services: dict[str, set[str]] = {}
    for name in jar.namelist():
        if name.startswith(SERVICES) and not name.endswith("/"):
            lines = jar.read(name).decode(errors="replace").splitlines()
            classes = {line.partition("#")[0].strip() for line in lines}
            services[name.removeprefix(SERVICES)] = classes - {""}
    return services


def release_of(jar: zipfile.ZipFile) -> int:
    """Return the Java release that the first class of a jar is compiled for; 0 without a class."""
    for name in jar.namelist():
        if name.endswith(_CLASS) and "META-INF/" not in name and "module-info" not in name:
            with jar.open(name) as file:
                return int.from_bytes(file.read(8)[6:], "big") - _BEFORE_JAVA
    return 0
