"""Jars and archives of plugins that are small and hold no real class."""

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

JAVA = 17
"""The release that classes in these jars are compiled for."""


def class_bytes(java: int = JAVA) -> bytes:
    """Return how a class file for a Java release begins."""
    return b"\xca\xfe\xba\xbe\0\0" + (java + 44).to_bytes(2, "big")


def jar_bytes(
    *classes: str, services: Mapping[str, Sequence[str]] | None = None, java: int = JAVA
) -> bytes:
    """Return a jar with classes, and with service files by interface."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        for name in classes:
            jar.writestr(f"{name.replace('.', '/')}.class", class_bytes(java))
        for interface, names in (services or {}).items():
            jar.writestr(f"META-INF/services/{interface}", "# ours\n" + "\n".join(names))
    return buffer.getvalue()


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Return a zip with files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tar_bytes(files: Mapping[str, bytes], *others: tarfile.TarInfo) -> bytes:
    """Return a tar.gz with files, and with entries without content behind them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for each in others:
            archive.addfile(each)
    return buffer.getvalue()


def write_jar(path: Path, *classes: str) -> Path:
    """Write a jar with classes, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jar_bytes(*classes))
    return path
