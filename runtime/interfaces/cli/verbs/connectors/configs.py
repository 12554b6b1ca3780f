"""The commands that change configs: `create`, `apply`, `diff`, `patch`, `scale` and `edit`."""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Final

from ....replies.connectors import ConfigDiff, ConnectorInfo, InitialState
from ...adapters.parameters import Argument, Ended, Option
from ...output.printing import (
    FAILED,
    MISUSED,
    Failed,
    Misused,
    format_yaml,
    say,
    show,
    show_sections,
)
from ...requests.client import Client, find_client
from ...requests.files import ConnectorFiles, Recursive, read_all_connectors, read_connectors
from ...requests.grammar import split_words
from ...requests.names import CONNECTORS, OfConnectors, Patterns, complete_names
from ...requests.options import RemoteOptions, RemoteReadOptions, with_options
from ...requests.resolving import find_connectors, match_connectors
from ...requests.several import for_each, pick
from ...requests.waiting import Awaited, WaitOptions, is_at_rest, make_wait, wait_for
from ...tables.connectors import tabulate_config_diffs

EXAMINED_SECONDS: Final = 10.0
"""How much longer an answer may take for each config: a node examines four at once, 40 s each."""


@with_options(WaitOptions)
def create(
    options: WaitOptions,
    files: ConnectorFiles,
    recursive: Recursive = False,
    initial_state: Annotated[
        InitialState | None,
        Option("--initial-state", help="Their first state; default: RUNNING."),
    ] = None,
) -> None:
    """Create connectors from files: each is {name, config}, or a plain config with its name.

    A file may hold several, as a list or as YAML documents. All values are the texts that stand
    there. They are created one after the other;
    one that fails does not keep the others from it.
    """
    timeout_ms = options.timeout_ms()
    configs = read_all_connectors(files, recursive=recursive)
    client = find_client(options)

    def post(name: str) -> None:
        asked: dict[str, object] = {"name": name, "config": configs[name]}
        if initial_state is not None:
            asked["initial_state"] = initial_state.value
        created = client.post(ConnectorInfo, "connectors", body=asked)
        say(f"connector {name} created")
        _warn(name, created.warnings)

    state = Awaited(initial_state.value.lower()) if initial_state else Awaited.RUNNING
    for_each(configs, post, then=make_wait(client, state, timeout_ms))


@with_options(WaitOptions)
def apply(
    options: WaitOptions,
    files: ConnectorFiles,
    recursive: Recursive = False,
    *,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only validate, and show what would change.")
    ] = False,
) -> None:
    """Create the connectors in files, or change their configs to those in the files.

    All of them in one epoch, or none if one is refused. A key that a file does not have is
    removed. Connectors that no file has stay as they are, and those that are paused or
    stopped stay so.
    """
    timeout_ms = options.timeout_ms()
    configs = read_all_connectors(files, recursive=recursive)
    client = find_client(options)
    _apply(client, configs, dry_run=dry_run)
    if timeout_ms is not None and not dry_run:
        running = [name for name in configs if not is_at_rest(client, name)]
        wait_for(client, running, Awaited.RUNNING, timeout_ms)


@with_options(RemoteReadOptions)
def diff(options: RemoteReadOptions, files: ConnectorFiles, recursive: Recursive = False) -> None:
    """Show what `apply` of files would change; the exit code is 1 if that is anything.

    It is 2 for an error, and 3 if no cluster answers.
    """
    diffs: list[ConfigDiff] = []
    try:
        configs = read_all_connectors(files, recursive=recursive)
        client = find_client(options)
        for_each(configs, lambda name: diffs.append(_compare(client, name, configs[name])))
    except Failed as error:
        error.status = max(error.status, MISUSED)  # 1 is for a difference
        raise
    finally:
        if diffs:  # what is refused hides nothing of the others
            show(options.output, diffs, tabulate_config_diffs(diffs))
    if any(each.changes for each in diffs):
        raise Ended(FAILED)


@with_options(RemoteOptions)
def patch(
    options: RemoteOptions,
    words: Annotated[
        list[str],
        Argument(
            metavar="[KIND] NAME... KEY=VALUE...",
            help="Names of connectors, then the keys to set. KIND is connector.",
            complete=complete_names(CONNECTORS),
        ),
    ],
    *,
    remove: Annotated[
        list[str] | None,
        Option("--remove", metavar="KEY", help="A key to remove; repeatable."),
    ] = None,
    patterns: Patterns = False,
) -> None:
    """Set and remove keys of the configs of connectors; their other keys stay."""
    split = split_words("patch", words, CONNECTORS)
    first, *more = split.names
    others = list(takewhile(lambda each: "=" not in each, more))
    changes: dict[str, str | None] = {}
    for each in more[len(others) :]:
        key, separator, value = each.partition("=")
        if not separator or not key:
            raise Misused(f"{each!r} is no change: write KEY=VALUE, or --remove KEY")
        changes[key] = value
    changes |= dict.fromkeys(remove or ())
    if not changes and others:
        raise Misused(f"{others[-1]!r} is no change: write KEY=VALUE, or --remove KEY")
    if not changes:
        raise Misused("say what is to be changed: KEY=VALUE, or --remove KEY")
    _patch_all(options, [first, *others], changes, "patched", patterns=patterns)


@with_options(RemoteOptions)
def scale(
    options: RemoteOptions,
    words: OfConnectors,
    *,
    tasks: Annotated[int, Option("--tasks", metavar="N", min=1, help="The new tasks.max.")],
    patterns: Patterns = False,
) -> None:
    """Set how many tasks connectors may have at most."""
    names = split_words("scale", words, CONNECTORS).names
    outcome = f"scaled to {tasks} tasks at most"
    _patch_all(options, names, {"tasks.max": str(tasks)}, outcome, patterns=patterns)


@with_options(RemoteOptions)
def edit(options: RemoteOptions, words: OfConnectors, *, patterns: Patterns = False) -> None:
    """Change the configs of connectors in your editor: $VISUAL, $EDITOR or vi.

    One after the other. A secret is shown as ********, and stays unless you write another one.
    """
    client, names = find_connectors(options, "edit", words, patterns=patterns)
    for name in names:
        _edit(client, name)


def _edit(client: Client, name: str) -> None:
    before = _config_of(client, name)
    with NamedTemporaryFile("wb", prefix="fairlead-", suffix=".yaml", delete=False) as text:
        text.write(format_yaml({"name": name, "config": before}).encode())
    file = Path(text.name)
    try:
        _open_editor(file)
        config = _config_in(file, name)
        if config == before:
            say(f"connector {name} unchanged")
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
            show_sections(tabulate_config_diffs([each]))
        _warn(each.name, each.warnings)


def _config_of(client: Client, name: str) -> dict[str, str]:
    return client.get(dict[str, str], "connectors", name, "config")


def _require(client: Client, name: str, config: Mapping[str, str]) -> None:
    if _config_of(client, name) != config:
        raise Failed(f"connector {name} was changed by somebody else meanwhile")


def _compare(client: Client, name: str, config: Mapping[str, str]) -> ConfigDiff:
    return client.put(ConfigDiff, "connectors", name, "config", "diff", body=config)


def _patch_all(
    options: RemoteOptions,
    names: Sequence[str],
    changes: Mapping[str, str | None],
    outcome: str,
    *,
    patterns: bool,
) -> None:
    """Change keys of connectors, of none if one of several is unknown."""
    client = find_client(options)
    if patterns:
        names = match_connectors(client, names)
    elif len(names) > 1:
        pick("connector", names, client.get(list[str], "connectors"), lambda name: [name])

    def change(name: str) -> None:
        patched = client.patch(ConnectorInfo, "connectors", name, "config", body=changes)
        _warn(name, patched.warnings)
        say(f"connector {name} {outcome}")

    for_each(names, change)


def _warn(name: str, warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        say(f"warning: {name}: {warning}")
