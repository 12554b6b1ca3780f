"""References in config values: what they are written like, and what they lead to on a worker.

A reference is not secret: it is logged as written, and resolved on the worker. `${env:NAME}` is an
environment variable of the worker, `${file:PATH:KEY}` a key of a properties file that the worker
can read, and `${dir:PATH:FILE}` a whole file, as of Kafka's providers. A value may contain several.

References lead to any file of the node's user, except those in the node's own folder.
"""

import os
import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import javaproperties

from ...pipeline.untrusted.plain_file import read_plain_file, why_not

_REFERENCE = re.compile(r"\$\{(?P<kind>env|file|dir|directory):(?P<place>[^{}]*)\}")
_OTHER: Final = re.compile(r"\$\{(?!(?:env|file|dir|directory|sealed):)([A-Za-z][\w-]*):[^{}]*\}")
_ANY: Final = re.compile(r"\$\{([^}:]*):[^{}]*\}")
_MOST_BYTES: Final = 256 << 10
"""The most that the references of one config may read: parsing it takes less than a second."""
_WHY: Final = {
    "env": "there is no such variable on this worker",
    "file": "there is no such key in the file on this worker",
}


class ReferenceBroken(Exception):  # noqa: N818  # says what it is about
    """A reference cannot be resolved; the message names it, and why."""


def is_reference(value: str) -> bool:
    """Return whether a value is exactly one reference."""
    return _REFERENCE.fullmatch(value) is not None


def refers_to(value: str, providers: Collection[str]) -> bool:
    """Return whether a value is exactly one reference, and begins with one of the providers."""
    found = _ANY.fullmatch(value.strip())
    return found is not None and found[1] in providers


def unknown_provider(value: str) -> tuple[str, bool] | None:
    """Return a reference that nothing resolves, and whether it is the whole value; None: none."""
    found = _OTHER.search(value)
    return None if found is None else (found[0], found[0] == value.strip())


def resolve(
    config: Mapping[str, str],
    resolved: dict[str, str] | None = None,
    own: str = "",
    left: Collection[str] = (),
) -> dict[str, str]:
    """Replace the references in a config by their values; raises `ReferenceBroken`.

    Values are not searched for further references. Each value is added to `resolved`, with its
    reference. `own` is the node's folder, from which nothing is read. References that begin with
    one of `left` are left as they are: others resolve them.
    """
    references = {} if resolved is None else resolved
    files = _Files(own)

    def substitute(key: str, reference: "re.Match[str]") -> str:
        if reference["kind"] in left:
            return reference[0]
        value = _look_up(key, reference, files)
        references[value] = reference[0]
        return value

    return {key: _REFERENCE.sub(partial(substitute, key), config[key]) for key in config}


class _Files:
    """The files that the references of one config lead to, each read once."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._left = _MOST_BYTES
        self._content: dict[str, bytes] = {}
        self._properties: dict[str, Mapping[str, str]] = {}

    def property(self, place: str) -> str:
        """Return a key's value for `PATH:KEY`; raises `KeyError`, `OSError`, `ValueError`."""
        path, _, key = place.rpartition(":")
        if path not in self._properties:
            text = _text(self._read(path))
            found: dict[str, str] = javaproperties.loads(text)  # pyright: ignore[reportUnknownMemberType]
            self._properties[path] = found
        return self._properties[path][key]

    def whole(self, place: str) -> str:
        """Return a file's content for `FOLDER:FILE`; raises `OSError`, `ValueError`."""
        folder, _, name = place.rpartition(":")
        if not name or name in {".", ".."} or "/" in name:
            raise ValueError("it must name a file in the folder: ${dir:FOLDER:FILE}")
        return self._read(f"{folder}/{name}").decode()

    def _read(self, path: str) -> bytes:
        if path not in self._content:
            self._content[path] = read_plain_file(path, self._left, self._own)
            self._left -= len(self._content[path])
        return self._content[path]


def _look_up(key: str, reference: "re.Match[str]", files: _Files) -> str:
    kind, place = reference["kind"], reference["place"]
    try:
        if kind == "env":
            return os.environ[place]
        return files.property(place) if kind == "file" else files.whole(place)
    except KeyError:
        told = f"{key}: {reference[0]} cannot be resolved: {_WHY[kind]}"
        raise ReferenceBroken(told) from None
    except OSError as error:
        raise ReferenceBroken(f"{key}: {reference[0]} cannot be read: {why_not(error)}") from None
    except UnicodeError:
        why = "it is not in UTF-8"
    except ValueError as error:  # javaproperties has errors of its own, which quote the content
        why = str(error) if type(error) is ValueError else "it is not a valid properties file"
    raise ReferenceBroken(f"{key}: {reference[0]} cannot be read: {why}")


def _text(content: bytes) -> str:
    """Return a properties file as text: in UTF-8, as Kafka reads it, or else as Java once did."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("iso-8859-1")
