"""What people change: `create` and `delete` connectors; `cordon`, `drain`, … `remove` workers."""

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from ...replies.connectors import ConnectorInfo, InitialState
from ...replies.node import GroupWorkerOrder, Message, WorkerRemoval
from ..command.client import Refused, client_of
from ..command.options import There, takes
from ..command.printing import Failed, Misused, say

STANDARD_INPUT: Final = Path("-")
UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
DURATION: Final = re.compile(rf"(\d{{1,9}})({'|'.join(UNITS_MS)})", re.ASCII)
LONGEST_MS: Final = (1 << 31) - 1


Worker = Annotated[
    str,
    typer.Argument(
        metavar="WORKER", help="Its name, as `get workers` tells it.", show_default=False
    ),
]


class Deletable(StrEnum):
    """What `delete` can delete."""

    CONNECTOR = "connector"


class Removable(StrEnum):
    """What `remove` can remove."""

    WORKER = "worker"


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
    initial_state: Annotated[
        InitialState | None,
        typer.Option("--initial-state", help="How they begin; RUNNING unless it is given."),
    ] = None,
) -> None:
    """Create connectors from a file: each is {name, config}, or a plain config with its name.

    A file may hold several, as a list or as documents of YAML. They are created in turn: where
    one fails, those before it stay, and those after it are not tried.
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
    what: Annotated[
        Deletable, typer.Argument(metavar="KIND", help="connector.", show_default=False)
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)],
) -> None:
    """Delete a connector: its tasks stop, its offsets stay."""
    pending = client_of(place).delete(Message, "connectors", name)
    say(pending.message if pending else f"{what.value} {name} deleted")


@takes(There)
def cordon(place: There, worker: Worker) -> None:
    """Give a worker nothing more; what it has it keeps."""
    _order(place, worker, "cordon")


@takes(There)
def uncordon(place: There, worker: Worker) -> None:
    """Let a worker be given work again: ends a cordon, and a drain."""
    _order(place, worker, "uncordon")


@takes(There)
def drain(place: There, worker: Worker) -> None:
    """Give a worker nothing more, and have it give up what it has."""
    _order(place, worker, "drain")


@takes(There)
def expect(
    place: There,
    worker: Worker,
    within: Annotated[
        str, typer.Option(metavar="TIME", help="Such as 90s, 10m or 2h; 0s: wait no longer.")
    ] = "10m",
) -> None:
    """Have a worker's work wait for it when it is lost, until it is back or the time is over.

    A worker that leaves in good order is not waited for: its work goes to the others at once.
    """
    _order(place, worker, "expect", {"within_ms": milliseconds(within)})


@takes(There)
def remove(
    place: There,
    what: Annotated[Removable, typer.Argument(metavar="KIND", help="worker.", show_default=False)],
    name: Worker,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="End its process at once, whatever it runs.")
    ] = False,
) -> None:
    """Remove a worker: it gives up what it has, leaves, and its process ends for good.

    Nothing waits for its return. Of a worker that is away or lost, only the wait for it ends.
    """
    query = {"force": "true"} if force else dict[str, str]()
    removal = client_of(place).delete(WorkerRemoval, "workers", name, **query)
    if removal:
        say(f"{what.value} {removal.worker}: {removal.message}")


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
    if len(documents) > 1:  # what stands in front of a first `---`, or behind a last one, is none
        documents = [each for each in documents if each is not None]
    return documents


def _texts(file: Path, config: Mapping[object, object] | Mapping[str, object]) -> dict[str, str]:
    """Return a config as Connect has it: texts only."""
    texts: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, str | bool | int | float):
            texts[str(key)] = _text_of(value)
        else:
            raise Misused(f"{key} in {file} is no text, number, true or false: put it in quotes")
    return texts


def _text_of(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def milliseconds(duration: str) -> int:
    """Return a duration such as 10m in milliseconds; raises `Misused`."""
    found = DURATION.fullmatch(duration.strip())
    told = int(found[1]) * UNITS_MS[found[2]] if found else -1
    if not 0 <= told <= LONGEST_MS:
        raise Misused(f"{duration!r} is no time, or too long a one: write 90s, 10m or 2h")
    return told


def _order(place: There, worker: str, verb: str, body: object = None) -> None:
    """Have an order carried out, and say what is in force now."""
    order = client_of(place).put(GroupWorkerOrder, "workers", worker, verb, body=body)
    wishes = {"cordoned": order.cordoned, "draining": order.draining}
    words = [word for word, is_wished in wishes.items() if is_wished] or ["open to work"]
    if order.expected_back_ms:
        words.append("expected back")
    say(f"worker {order.worker} is {', '.join(words)}")
