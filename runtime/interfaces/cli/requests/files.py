"""The connectors in the files that a user gives, as JSON or YAML.

Every value is the text that stands in the file: YAML would read the password 0123456 as an octal
number, the country NO as false and the version 1.10 as 1.1.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, cast

from ..adapters.parameters import Option
from ..output.printing import Failed, Misused

STANDARD_INPUT: Final = Path("-")
SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
"""The files that are read of a folder."""

ConnectorFiles = Annotated[
    list[Path],
    Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="A JSON or YAML file, or a folder of them; repeatable; - is standard input.",
        show_default=False,
    ),
]
NameOfNameless = Annotated[
    str,
    Option("--name", "-n", metavar="NAME", help="The name of a connector whose file has none."),
]
Recursive = Annotated[
    bool, Option("--recursive", "-R", help="Read the folders in given folders as well.")
]


def read_all_connectors(
    files: Sequence[Path], *, recursive: bool = False, name_of_nameless: str = ""
) -> dict[str, dict[str, str]]:
    """Return the configs in files and folders by the name of their connector.

    Raises `Failed` for what cannot be read, `Misused` for what is no connector, and for a name
    that occurs twice.
    """
    configs: dict[str, dict[str, str]] = {}
    origins: dict[str, Path] = {}
    for file in list_files(files, recursive=recursive):
        for name, config in read_connectors(file, name_of_nameless):
            if name in configs:
                where = f"{file} has more than one"
                if origins[name] != file:
                    where = f"{origins[name]} and {file} both have a"
                raise Misused(f"{where} connector {name}: which one is meant?")
            configs[name], origins[name] = config, file
    return configs


def list_files(given: Iterable[Path], *, recursive: bool) -> Iterator[Path]:
    """Yield the files, and those of folders in the order of their names; raises `Misused`."""
    for path in dict.fromkeys(given):
        if path == STANDARD_INPUT or not path.is_dir():
            yield path
            continue
        inside = path.rglob("*") if recursive else path.glob("*")
        found = sorted(each for each in inside if each.suffix in SUFFIXES and each.is_file())
        if not found:
            raise Misused(f"{path} is a folder without a {', '.join(sorted(SUFFIXES))} file")
        yield from found


def read_connectors(file: Path, name_of_nameless: str = "") -> list[tuple[str, dict[str, str]]]:
    """Return the connectors in a file by name and config; raises `Failed`, `Misused`.

    A file holds one or a list, in each of its documents if it is YAML.
    """
    several: list[object] = []
    for found in read_documents(file):
        several += cast("list[object]", found) if isinstance(found, list) else [found]
    return [_connector(file, each, name_of_nameless) for each in several or [None]]


def _connector(file: Path, found: object, name_of_nameless: str) -> tuple[str, dict[str, str]]:
    if not isinstance(found, Mapping):
        raise Misused(f"{file} holds no connector: name and config are expected")
    members = cast("Mapping[str, object]", found)
    _refuse_plugins(file, members)
    given = members.get("name", name_of_nameless)
    name = given if isinstance(given, str) else ""
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
    return name, _texts(file, cast("Mapping[str, object]", config))


def _refuse_plugins(file: Path, document: object) -> None:
    """Raise `Misused` for a list of plugins, which the node's own files get, not its REST."""
    members = cast("Mapping[str, object]", document)
    if "name" in members or not members.keys() & {"plugins", "build", "spec"}:
        return
    from ....pipeline.plugins.catalogue.installing.lists import plugins_in  # noqa: PLC0415

    if plugins_in(document) is not None:
        raise Misused(
            f"{file} lists plugins and no connector: `fairlead plugins apply -f {file}` adds them"
        )


def read_documents(file: Path) -> list[object]:
    """Return the documents in a file; JSON is always one. Raises `Failed`, `Misused`."""
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror or error}") from None
    if file.suffix == ".properties":  # as a standalone worker of Connect has them
        return [_read_properties(file, content)]
    try:
        return [read_json(content, str(file))]
    except RecursionError:
        raise Misused(f"{file} is neither JSON nor YAML: it is nested too deeply") from None
    except ValueError:
        return _parsed_yaml(file, content)


def read_json(content: str | bytes, where: str, *, as_texts: bool = True) -> object:
    """Parse JSON; raises `Misused` for a key that occurs twice, `ValueError` for other text.

    With `as_texts` a number is the text that stands there, and true and false are words.
    """

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise Misused(f"{where} has the key {twice} twice: keep one of them")
        if as_texts:
            words = {True: "true", False: "false"}
            return {k: words[v] if isinstance(v, bool) else v for k, v in mapping.items()}
        return mapping

    if not as_texts:
        return json.loads(content, object_pairs_hook=members)
    return json.loads(
        content, object_pairs_hook=members, parse_int=str, parse_float=str, parse_constant=str
    )


def _read_properties(file: Path, content: bytes) -> object:
    from io import BytesIO  # noqa: PLC0415

    import javaproperties  # noqa: PLC0415  # JSON and YAML do without

    try:
        return javaproperties.load(BytesIO(content))  # pyright: ignore[reportUnknownMemberType]
    except ValueError as error:
        raise Misused(f"{file} is not a valid .properties file: {error}") from None


def _parsed_yaml(file: Path, content: bytes) -> list[object]:
    import yaml  # noqa: PLC0415  # JSON does without

    from .yaml_texts import TextLoader  # noqa: PLC0415

    try:
        documents = list(yaml.load_all(content, TextLoader))
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Misused(f"{file} is neither JSON nor YAML: {error.problem}{where}") from None
    except (yaml.YAMLError, ValueError, IndexError, RecursionError) as error:
        told = str(error).partition("\n")[0]
        raise Misused(f"{file} is neither JSON nor YAML: {told}") from None
    if len(documents) > 1:  # empty text before the first `---` or after the last is no document
        documents = [each for each in documents if each is not None]
    return documents


def _texts(file: Path, config: Mapping[Any, object]) -> dict[str, str]:
    """Return a config whose values are all texts; raises `Misused`."""
    for key, value in config.items():
        if value is None:
            raise Misused(f'{key} in {file} has no value: write "" for an empty text, or remove it')
        if not isinstance(key, str) or not isinstance(value, str):
            raise Misused(f"{key} in {file} is no text, number, true or false: put it in quotes")
    return cast("dict[str, str]", dict(config))
