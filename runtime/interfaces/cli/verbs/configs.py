"""The commands that change configs: `create`, `apply`, `diff`, `patch`, `scale` and `edit`."""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Final

import typer

from ...replies.connectors import ConfigDiff, ConnectorInfo, InitialState
from ..command.client import Client, client_of
from ..command.connector_tables import config_diffs
from ..command.options import ReadThere, There, takes
from ..command.printing import FAILED, Failed, Misused, as_yaml, say, show, show_sections
from ..requests.files import ConnectorFiles, Recursive, read_all_connectors, read_connectors
from ..requests.names import Connector
from ..requests.several import for_each
from ..requests.waiting import Awaited, Waiting, runs_nothing, wait_for
from .connectors import OneKind

EXAMINED_SECONDS: Final = 10.0
"""How much longer an answer may take for each config: a node examines four at once, 40 s each."""


@takes(Waiting)
def create(
    place: Waiting,
    files: ConnectorFiles,
    recursive: Recursive = False,
    initial_state: Annotated[
        InitialState | None,
        typer.Option("--initial-state", help="Their first state; default: RUNNING."),
    ] = None,
) -> None:
    """Create connectors from files: each is {name, config}, or a plain config with its name.

    A file may hold several, as a list or as YAML documents. All values are the texts that stand
    there. They are created one after the other;
    one that fails does not keep the others from it.
    """
    timeout_ms = place.timeout_ms()
    configs = read_all_connectors(files, recursive=recursive)
    client = client_of(place)

    def post(name: str) -> None:
        asked: dict[str, object] = {"name": name, "config": configs[name]}
        if initial_state is not None:
            asked["initial_state"] = initial_state.value
        created = client.post(ConnectorInfo, "connectors", body=asked)
        say(f"connector {name} created")
        _warn(name, created.warnings)

    for_each(configs, post)
    if timeout_ms is not None:
        state = Awaited(initial_state.value.lower()) if initial_state else Awaited.RUNNING
        wait_for(client, configs, state, timeout_ms)


@takes(Waiting)
def apply(
    place: Waiting,
    files: ConnectorFiles,
    recursive: Recursive = False,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only validate, and show what would change.")
    ] = False,
) -> None:
    """Create the connectors in files, or change their configs to those in the files.

    All of them in one epoch, or none if one is refused. A key that a file does not have is
    removed. Connectors that no file has stay as they are, and those that are paused or
    stopped stay so.
    """
    timeout_ms = place.timeout_ms()
    configs = read_all_connectors(files, recursive=recursive)
    client = client_of(place)
    _apply(client, configs, dry_run=dry_run)
    if timeout_ms is not None and not dry_run:
        running = [name for name in configs if not runs_nothing(client, name)]
        wait_for(client, running, Awaited.RUNNING, timeout_ms)


@takes(ReadThere)
def diff(place: ReadThere, files: ConnectorFiles, recursive: Recursive = False) -> None:
    """Show what `apply` of a file would change; the exit code is 1 if that is anything."""
    configs = read_all_connectors(files, recursive=recursive)
    client = client_of(place)
    diffs: list[ConfigDiff] = []
    try:
        for_each(configs, lambda name: diffs.append(_compare(client, name, configs[name])))
    finally:
        if diffs:  # what is refused hides nothing of the others
            show(place.output, diffs, config_diffs(diffs))
    if any(each.changes for each in diffs):
        raise typer.Exit(FAILED)


@takes(There)
def patch(
    place: There,
    what: OneKind,
    name: Connector,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Keys to set.", show_default=False),
    ] = None,
    *,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", metavar="KEY", help="A key to remove; repeatable."),
    ] = None,
) -> None:
    """Set and remove keys of a connector's config; its other keys stay."""
    changes: dict[str, str | None] = {}
    for each in values or ():
        key, separator, value = each.partition("=")
        if not separator or not key:
            raise Misused(f"{each!r} is no change: write KEY=VALUE, or --remove KEY")
        changes[key] = value
    changes |= dict.fromkeys(remove or ())
    if not changes:
        raise Misused("say what is to be changed: KEY=VALUE, or --remove KEY")
    _patch(place, name, changes)
    say(f"{what.value} {name} patched")


@takes(There)
def scale(
    place: There,
    what: OneKind,
    name: Connector,
    *,
    tasks: Annotated[int, typer.Option("--tasks", metavar="N", min=1, help="The new tasks.max.")],
) -> None:
    """Set how many tasks a connector may have at most."""
    _patch(place, name, {"tasks.max": str(tasks)})
    say(f"{what.value} {name} scaled to {tasks} tasks at most")


@takes(There)
def edit(place: There, what: OneKind, name: Connector) -> None:
    """Change a connector's config in your editor: $VISUAL, $EDITOR or vi.

    A secret is shown as ********, and stays unless you write another one.
    """
    client = client_of(place)
    before = _config_of(client, name)
    with NamedTemporaryFile("wb", prefix="fairlead-", suffix=".yaml", delete=False) as text:
        text.write(as_yaml({"name": name, "config": before}).encode())
    file = Path(text.name)
    try:
        _open_editor(file)
        config = _config_in(file, name)
        if config == before:
            say(f"{what.value} {name} unchanged")
        else:
            _require(client, name, before)
            _apply(client, {name: config})
    except Failed as error:
        kept = f"your text is kept: `fairlead apply -f {file}` applies it"
        raise type(error)(f"{error}\n{kept}") from None
    file.unlink()


def _open_editor(file: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    # Ctrl-C is the editor's while it runs, which may end by it or not.
    interrupted = signal.signal(signal.SIGINT, _go_on)
    try:
        ended = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603  # the user's own
    except (OSError, ValueError) as error:
        raise Failed(f"the editor {editor} cannot be started: {error}") from None
    finally:
        signal.signal(signal.SIGINT, interrupted)
    if ended.returncode:
        raise Failed(f"the editor {editor} failed: nothing was changed")


def _go_on(*_: object) -> None:
    """Be interrupted by a signal, and do nothing; what is started does not inherit this."""


def _config_in(file: Path, name: str) -> dict[str, str]:
    match read_connectors(file):
        case [(found, config)] if found == name:
            return config
        case _:
            raise Misused(f"{file} is to hold connector {name}, and no other")


def _apply(
    client: Client, configs: Mapping[str, Mapping[str, str]], *, dry_run: bool = False
) -> None:
    """Create connectors and change configs, all or none; tell what was done, or would be."""
    connectors = [{"name": name, "config": config} for name, config in configs.items()]
    body = {"connectors": connectors, "dry_run": dry_run}
    client.answer_seconds += EXAMINED_SECONDS * len(configs)
    for each in client.post(list[ConfigDiff], "apply", body=body):
        told = "created" if each.is_new else "configured" if each.changes else "unchanged"
        say(f"connector {each.name} {'would be ' if dry_run else ''}{told}")
        if dry_run and each.changes:
            show_sections(config_diffs([each]))
        _warn(each.name, each.warnings)


def _config_of(client: Client, name: str) -> dict[str, str]:
    return client.get(dict[str, str], "connectors", name, "config")


def _require(client: Client, name: str, config: Mapping[str, str]) -> None:
    if _config_of(client, name) != config:
        raise Failed(f"connector {name} was changed by somebody else meanwhile")


def _compare(client: Client, name: str, config: Mapping[str, str]) -> ConfigDiff:
    return client.put(ConfigDiff, "connectors", name, "config", "diff", body=config)


def _patch(place: There, name: str, changes: Mapping[str, str | None]) -> None:
    client = client_of(place)
    patched = client.patch(ConnectorInfo, "connectors", name, "config", body=changes)
    _warn(name, patched.warnings)


def _warn(name: str, warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        say(f"warning: {name}: {warning}")
