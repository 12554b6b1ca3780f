"""The commands for connectors: `create`, `delete`, `pause`, `resume`, `stop`, `restart`."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from .....events.model import RunState
from ...replies.connectors import ConnectorInfo, ConnectorStateInfo, InitialState
from ...replies.node import Message
from ..command.client import Refused, client_of
from ..command.options import There, of_kind, takes
from ..command.printing import Failed, Misused, say

STANDARD_INPUT: Final = Path("-")

Connector = Annotated[
    str, typer.Argument(metavar="NAME", help="The connector's name.", show_default=False)
]


class Deletable(StrEnum):
    """The types that `delete` accepts."""

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
            help="A JSON or YAML file; - is standard input.",
            show_default=False,
        ),
    ],
    initial_state: Annotated[
        InitialState | None,
        typer.Option("--initial-state", help="Their first state; default: RUNNING."),
    ] = None,
) -> None:
    """Create connectors from a file: each is {name, config}, or a plain config with its name.

    A file may hold several, as a list or as YAML documents. They are created one after the other:
    if one fails, those before it stay, and those after it are not tried.
    """
    connectors = read_connectors(file)
    client = client_of(place)
    for name, config in connectors:
        try:
            asked = {"name": name, "config": config}
            if initial_state is not None:
                asked |= {"initial_state": initial_state.value}
            created = client.post(ConnectorInfo, "connectors", body=asked)
        except Refused as refused:
            if len(connectors) == 1:
                raise
            rest = f"{file}: nothing of what comes after {name} was sent"
            raise Failed(f"connector {name} was not created: {refused}\n{rest}") from None
        say(f"connector {name} created")
        for warning in created.warnings:
            say(f"warning: {name}: {warning}")


@takes(There)
def delete(
    place: There,
    what: Annotated[Deletable, of_kind(Deletable, "connector.")],
    name: Connector,
    *,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget/--no-forget",
            help="Remove what its source keeps elsewhere, such as a replication slot.",
        ),
    ] = True,
) -> None:
    """Delete a connector: its tasks stop, its offsets stay."""
    query = dict[str, str]() if forget else {"forget": "false"}
    pending = client_of(place).delete(Message, "connectors", name, **query)
    say(pending.message if pending else f"{what.value} {name} deleted")


@takes(There)
def pause(place: There, name: Connector) -> None:
    """Pause a connector: its tasks stay on their workers and begin no batch."""
    _order(place, name, "pause")
    say(f"connector {name} pauses")


@takes(There)
def resume(place: There, name: Connector) -> None:
    """Resume a connector that is paused or stopped."""
    _order(place, name, "resume")
    say(f"connector {name} runs")


@takes(There)
def stop(place: There, name: Connector) -> None:
    """Stop a connector: its tasks end once what they committed is published.

    Its offsets stay, and can be changed as soon as its state is STOPPED.
    """
    _order(place, name, "stop")
    say(f"connector {name} stops")


@takes(There)
def restart(
    place: There,
    name: Connector,
    *,
    task: Annotated[int | None, typer.Option(metavar="N", help="Restart only this task.")] = None,
    include_tasks: Annotated[
        bool, typer.Option("--include-tasks", help="Restart the connector's tasks as well.")
    ] = False,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Restart only what has failed.")
    ] = False,
) -> None:
    """Restart a connector, one task, or everything of the connector that has failed."""
    client = client_of(place)
    if task is not None:
        if include_tasks or only_failed:
            raise Misused("--task names one task: --include-tasks and --only-failed go without it")
        client.order("POST", Message, "connectors", name, "tasks", str(task), "restart")
        say(f"task {name}-{task} restarted")
        return
    wishes = {"includeTasks": include_tasks, "onlyFailed": only_failed}
    query = {key: "true" for key, is_wished in wishes.items() if is_wished}
    told = client.order("POST", ConnectorStateInfo, "connectors", name, "restart", **query)
    if told is None:
        say(f"connector {name} restarted")
        return
    state = RunState.RESTARTING.value
    restarting = [f"{name}-{each.id}" for each in told.tasks if each.state == state]
    if told.connector.state == state:
        restarting.insert(0, name)
    say(f"restarting: {', '.join(restarting) or 'nothing, since nothing has failed'}")


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
    except (yaml.YAMLError, ValueError, RecursionError) as error:
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
    return str(value).lower() if isinstance(value, bool) else str(value)


def _order(place: There, name: str, verb: str) -> None:
    client_of(place).order("PUT", Message, "connectors", name, verb)
