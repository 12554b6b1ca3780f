"""The command `lint`: configs in files are checked without a node, as CI does it.

What the node would refuse is an error here: an unknown, missing or misspelt key, and a value that
is none. Nothing outside is asked: a folder or a database that a config names need not be there.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Struct

from ..adapters.parameters import Argument, Ended, Option
from ..output.phrases import format_count
from ..output.printing import FAILED, Failed, Output, say, show
from ..requests.files import STANDARD_INPUT, Recursive, list_files, read_connectors

_LINE: Final = re.compile(r" in line (\d+)")
_OWN: Final = "fairlead."
_NAMED_KEY: Final = re.compile(r"configuration (\S+?)(?::| which)|\bkey (\S+?)[:,]")


class LintLevel(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"


class LintFinding(Struct, frozen=True):
    """A mistake in a file, or what may be one."""

    file: str
    line: int | None
    severity: LintLevel
    connector: str
    text: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        subject = f"{self.connector}: " if self.connector else ""
        return f"{place}: {self.severity}: {subject}{self.text}"


def lint(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE...",
            help="JSON, YAML or .properties, folders of them, or - for standard input.",
        ),
    ],
    *,
    recursive: Recursive = False,
    strict: Annotated[
        bool, Option("--strict", help="A warning makes the exit code 1 as well.")
    ] = False,
    output: Annotated[Output, Option("--output", "-o", help="The output format.")] = Output.TABLE,
) -> None:
    """Check configs in files without a node; the exit code is 1 if one has an error.

    They are checked as a node does it that has the same plugins, but for what is outside:
    databases, brokers and folders. Each finding has its file and line. The keys of a plugin of
    Kafka Connect are checked by nodes alone, which have its code.
    """
    findings = [*check_files(list_files(files, recursive=recursive))]
    if output is not Output.TABLE:
        show(output, findings, ())
    else:
        for each in findings:
            say(str(each))
        errors = sum(each.severity is LintLevel.ERROR for each in findings)
        warnings = len(findings) - errors
        counts = f"{format_count(errors, 'error')}, {format_count(warnings, 'warning')}"
        say(counts if findings else "no finding")
    if any(strict or each.severity is LintLevel.ERROR for each in findings):
        raise Ended(FAILED)


def check_files(files: Iterable[Path]) -> Iterator[LintFinding]:
    """Yield what is wrong in files, and with their connectors."""
    from ...rest.validation.configs import with_name  # noqa: PLC0415  # slow: all plugins

    origins: dict[str, Path] = {}
    for file in files:
        try:
            connectors = read_connectors(file)
        except Failed as error:
            match = _LINE.search(str(error))
            line = int(match[1]) if match else None
            yield LintFinding(str(file), line, LintLevel.ERROR, "", str(error))
            continue
        lines = _find_lines(file)
        for name, config in connectors:
            of_keys = lines.get(name, {})
            if name in origins:
                text = f"{origins[name]} has a connector {name}, too: which one is meant?"
                yield LintFinding(str(file), of_keys.get("name"), LintLevel.ERROR, name, text)
            origins[name] = file
            for severity, key, text in _check(name, config, with_name):
                line = of_keys.get(key, of_keys.get("name"))
                yield LintFinding(str(file), line, severity, name, text)


def _check(
    name: str,
    config: Mapping[str, str],
    with_name: Any,  # noqa: ANN401  # it is slow to import
) -> Iterator[tuple[LintLevel, str, str]]:
    """Yield the findings about one config: severity, key and text."""
    from ....config.secrets import Vault  # noqa: PLC0415
    from ....pipeline.connectors.plugins import find_plugins  # noqa: PLC0415
    from ....pipeline.spi.errors import PluginUnknown  # noqa: PLC0415
    from ...rest.server.errors import ApiError  # noqa: PLC0415
    from ...rest.validation.configs import check_config, check_name  # noqa: PLC0415

    class_name = config.get("connector.class")
    if not class_name:
        yield LintLevel.ERROR, "name", "connector.class is missing: it names the plugin"
        return
    try:
        check_name(name)
        named = with_name(name, config)
        plugin = find_plugins().of(named)
        checked = check_config(plugin, Vault(os.urandom(32)), named, {})
    except PluginUnknown as error:
        is_own = "." not in class_name or class_name.startswith(_OWN)
        yield LintLevel.ERROR if is_own else LintLevel.WARNING, "connector.class", str(error)
        return
    except ApiError as error:
        yield LintLevel.ERROR, "name", error.message
        return
    for each in checked.validation.checked:
        for text in each.error_messages:
            yield LintLevel.ERROR, each.definition.name, text
    for text in checked.flaws:
        yield LintLevel.ERROR, _key_in(text), text
    for text in checked.validation.warnings:
        yield LintLevel.WARNING, _key_in(text), text


def _key_in(text: str) -> str:
    """Return the key that a message names, "" if none is found."""
    match = _NAMED_KEY.search(text)
    return (match[1] or match[2]) if match else ""


def _find_lines(file: Path) -> dict[str, dict[str, int]]:
    """Return the line of each key by the name of its connector; JSON is YAML for this."""
    import yaml  # noqa: PLC0415

    if file == STANDARD_INPUT or file.suffix == ".properties":
        return {}
    lines: dict[str, dict[str, int]] = {}
    try:
        documents = [*yaml.compose_all(file.read_bytes(), yaml.SafeLoader)]
    except (yaml.YAMLError, OSError, ValueError, RecursionError):
        return {}  # a tab in JSON is no YAML
    for document in documents:
        for node in document.value if isinstance(document, yaml.SequenceNode) else [document]:
            found = _lines_of(node)
            name = next((text for text, _ in found.get("name", ())), "")
            own = {key: places[0][1] for key, places in found.items()}
            lines.setdefault(name, own)
    return lines


def _lines_of(node: Any) -> dict[str, Sequence[tuple[str, int]]]:  # noqa: ANN401  # a node of YAML
    """Return the value and the line of each key of a connector, also of those in its config."""
    import yaml  # noqa: PLC0415

    lines: dict[str, Sequence[tuple[str, int]]] = {}
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        text = value.value if isinstance(value, yaml.ScalarNode) else ""
        lines.setdefault(str(key.value), [(text, key.start_mark.line + 1)])
        if key.value == "config":
            lines |= {each: places for each, places in _lines_of(value).items() if each != "name"}
    return lines
