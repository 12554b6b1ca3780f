"""Config values that say where to find what they stand for, resolved where they are used.

`${env:NAME}` is an environment variable of the worker, `${file:PATH:KEY}` a key of a properties
file that the worker can read. They may stand anywhere in a value, more than one of them, too.
"""

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import javaproperties

_REFERENCE = re.compile(r"\$\{(?P<kind>env|file):(?P<place>[^{}]*)\}")


class ReferenceBroken(Exception):  # noqa: N818  # says what it is about
    """What a reference leads to is not there; the text names the place, and what to do."""


def is_reference(value: str) -> bool:
    """Tell whether a value is one reference and nothing else."""
    return _REFERENCE.fullmatch(value) is not None


def resolve(config: Mapping[str, str], found: dict[str, str] | None = None) -> dict[str, str]:
    """Return a config with what its references lead to; raises `ReferenceBroken`.

    What was put in is not looked through again. `found` takes each value that was put in, with
    its reference.
    """
    noted = {} if found is None else found

    def put_in(key: str, reference: "re.Match[str]") -> str:
        value = _look_up(key, reference)
        noted[value] = reference[0]
        return value

    return {key: _REFERENCE.sub(partial(put_in, key), config[key]) for key in config}


def _look_up(key: str, reference: "re.Match[str]") -> str:
    place = reference["place"]
    try:
        return os.environ[place] if reference["kind"] == "env" else _in_file(place)
    except KeyError:
        raise ReferenceBroken(
            f"{key}: {reference[0]} leads to nothing: there is no such"
            f" {'variable' if reference['kind'] == 'env' else 'key in the file'} at this worker"
        ) from None
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no sound properties file"
        raise ReferenceBroken(f"{key}: {reference[0]} can not be read: {told}") from None


def _in_file(place: str) -> str:
    path, _, key = place.rpartition(":")
    with Path(path).open("rb") as file:
        found: dict[str, str] = javaproperties.load(file)  # pyright: ignore[reportUnknownMemberType]
    return found[key]
