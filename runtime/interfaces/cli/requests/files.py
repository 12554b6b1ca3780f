"""The connectors in a file that a user gives, as JSON or YAML."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from ..command.printing import Failed, Misused

STANDARD_INPUT: Final = Path("-")

ConnectorFile = Annotated[
    Path,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="A JSON or YAML file; - is standard input.",
        show_default=False,
    ),
]


def read_connectors(file: Path) -> list[tuple[str, dict[str, str]]]:
    """Return the connectors in a file by name and config; raises `Failed`, `Misused`.

    A file holds one or a list, in each of its documents if it is YAML.
    """
    several: list[object] = []
    for found in _parsed(file):
        several += cast("list[object]", found) if isinstance(found, list) else [found]
    connectors = [_connector(file, each) for each in several or [None]]
    names = Counter(name for name, _ in connectors)
    if twice := [name for name, count in names.items() if count > 1]:
        raise Misused(f"{file} has more than one connector {', '.join(twice)}: which one is meant?")
    return connectors


def _connector(file: Path, found: object) -> tuple[str, dict[str, str]]:
    if not isinstance(found, Mapping):
        raise Misused(f"{file} holds no connector: name and config are expected")
    members = {str(key): value for key, value in cast("Mapping[object, object]", found).items()}
    given = members.get("name")
    name = _text_of(given) if isinstance(given, str | bool | int | float) else ""
    if not name.strip():
        raise Misused(f"{file} gives the connector no name: add one")
    if "config" not in members:
        return name, _texts(file, members)
    config = members["config"]
    if not isinstance(config, Mapping):
        raise Misused(f"config in {file} holds no keys and values")
    strange = sorted(members.keys() - {"name", "config"})
    if strange:
        raise Misused(
            f"{file} has {', '.join(strange)} beside name and config: move it into config"
        )
    return name, _texts(file, cast("Mapping[object, object]", config))


def _parsed(file: Path) -> list[object]:
    """Return the documents in a file; JSON is always one."""
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror or error}") from None
    try:
        return [json.loads(content)]
    except RecursionError:
        raise Misused(f"{file} is neither JSON nor YAML: it is nested too deeply") from None
    except ValueError:
        return _parsed_yaml(file, content)


def _parsed_yaml(file: Path, content: bytes) -> list[object]:
    import yaml  # noqa: PLC0415  # JSON does without

    try:
        documents = list(yaml.safe_load_all(content))
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Misused(f"{file} is neither JSON nor YAML: {error.problem}{where}") from None
    except (yaml.YAMLError, ValueError, IndexError, RecursionError) as error:
        told = str(error).partition("\n")[0]
        raise Misused(f"{file} is neither JSON nor YAML: {told}") from None
    if len(documents) > 1:  # empty text before the first `---` or after the last is no document
        documents = [each for each in documents if each is not None]
    return documents


def _texts(file: Path, config: Mapping[object, object] | Mapping[str, object]) -> dict[str, str]:
    """Return a config with all values as texts, as in Connect."""
    texts: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, str | bool | int | float):
            texts[str(key)] = _text_of(value)
        else:
            raise Misused(f"{key} in {file} is no text, number, true or false: put it in quotes")
    return texts


def _text_of(value: str | float) -> str:
    try:
        return str(value).lower() if isinstance(value, bool) else str(value)
    except ValueError:  # Python writes out no number of more than 4,300 digits
        raise Misused("a number is too long: put it in quotes") from None
