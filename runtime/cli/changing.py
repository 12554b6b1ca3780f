"""`create` and `delete`: what people ask a cluster to do."""

import json
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from .client import client_of
from .documents import text
from .options import There, takes
from .outcome import Failed, Misused
from .printing import say

STANDARD_INPUT: Final = Path("-")


class Deletable(StrEnum):
    """What `delete` can delete."""

    CONNECTOR = "connector"


@takes(There)
def create(
    place: There,
    file: Annotated[
        Path,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="JSON or YAML; - is standard input.",
            show_default=False,
        ),
    ],
) -> None:
    """Create a connector from a file: {name, config}, or a plain config with its name."""
    name, config = read_connector(file)
    client_of(place).post("connectors", body={"name": name, "config": config})
    say(f"connector {name} created")


@takes(There)
def delete(
    place: There,
    what: Annotated[
        Deletable, typer.Argument(metavar="KIND", help="connector.", show_default=False)
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)],
) -> None:
    """Delete a connector: its tasks stop, its offsets stay."""
    client_of(place).delete("connectors", name)
    say(f"{what.value} {name} deleted")


def read_connector(file: Path) -> tuple[str, dict[str, str]]:
    """Return the name and the config in a file; raises `Failed`, `Misused`."""
    return _connector(file, _parsed(file))


def read_connectors(file: Path) -> list[tuple[str, dict[str, str]]]:
    """Return the connectors in a file, which holds one or a list; raises `Failed`, `Misused`."""
    found = _parsed(file)
    several = cast("list[object]", found) if isinstance(found, list) else [found]
    return [_connector(file, each) for each in several]


def _connector(file: Path, found: object) -> tuple[str, dict[str, str]]:
    if not isinstance(found, Mapping):
        raise Misused(f"{file} holds no connector: name and config are expected")
    members = {str(key): value for key, value in cast("Mapping[object, object]", found).items()}
    name = text(members, "name")
    if not name.strip():
        raise Misused(f"{file} gives the connector no name: add one")
    config = members.get("config")
    if not isinstance(config, Mapping):
        if config is not None:
            raise Misused(f"config in {file} holds no keys and values")
        return name, _texts(file, members)
    strange = sorted(members.keys() - {"name", "config"})
    if strange:
        raise Misused(
            f"{file} has {', '.join(strange)} beside name and config: move it into config"
        )
    return name, _texts(file, cast("Mapping[object, object]", config))


def _parsed(file: Path) -> object:
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror or error}") from None
    try:
        return json.loads(content)
    except RecursionError:
        raise Misused(f"{file} is neither JSON nor YAML: it is nested too deeply") from None
    except ValueError:
        return _parsed_yaml(file, content)


def _parsed_yaml(file: Path, content: bytes) -> object:
    import yaml  # noqa: PLC0415  # JSON does without

    try:
        return yaml.safe_load(content)
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Misused(f"{file} is neither JSON nor YAML: {error.problem}{where}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        told = str(error).partition("\n")[0]
        raise Misused(f"{file} is neither JSON nor YAML: {told}") from None


def _texts(file: Path, config: Mapping[object, object] | Mapping[str, object]) -> dict[str, str]:
    """Return a config as Connect has it: texts only."""
    texts: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, bool):
            texts[str(key)] = str(value).lower()
        elif isinstance(value, str | int | float):
            texts[str(key)] = str(value)
        else:
            raise Misused(f"{key} in {file} is no text, number, true or false: put it in quotes")
    return texts
