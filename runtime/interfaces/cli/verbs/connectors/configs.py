"""The commands that change configs: `create`, `diff`, `patch`, `scale` and `edit`."""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated

from ....replies.connectors import ConfigDiff, ConnectorInfo, InitialState
from ....replies.live.awaited import Awaited
from ...adapters.parameters import Argument, Ended, Option
from ...output.printing import (
    FAILED,
    MISUSED,
    Failed,
    Misused,
    format_yaml,
    say,
    show,
)
from ...requests.client import Client, find_client
from ...requests.files import (
    ConnectorFiles,
    NameOfNameless,
    Recursive,
    read_all_connectors,
    read_connectors,
)
from ...requests.grammar import CONNECTORS, split_words
from ...requests.names import OfConnectors, complete_changes, complete_own_keys
from ...requests.options import RemoteOptions, RemoteReadOptions, with_options
from ...requests.resolving import choose_connectors, find_connectors, split_choice
from ...requests.selecting import Choice
from ...requests.several import for_each, pick
from ...requests.waiting import WaitOptions, make_wait
from ...tables.connectors import tabulate_config_diffs
from .applying import send_configs, tell_changes, tell_warnings


@with_options(WaitOptions)
def create(
    options: WaitOptions,
    files: ConnectorFiles,
    recursive: Recursive = False,
    name: NameOfNameless = "",
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
    configs = read_all_connectors(files, recursive=recursive, name_of_nameless=name)
    client = find_client(options)

    def post(each: str) -> None:
        asked: dict[str, object] = {"name": each, "config": configs[each]}
        if initial_state is not None:
            asked["initial_state"] = initial_state.value
        created = client.post(ConnectorInfo, "connectors", body=asked)
        say(f"connector {each} created")
        tell_warnings(each, created.warnings)

    state = Awaited(initial_state.value.lower()) if initial_state else Awaited.RUNNING
    for_each(configs, post, then=make_wait(client, state, timeout_ms))


@with_options(RemoteReadOptions)
def diff(
    options: RemoteReadOptions,
    files: ConnectorFiles,
    recursive: Recursive = False,
    name: NameOfNameless = "",
) -> None:
    """Show what `apply` of files would change; the exit code is 1 if that is anything.

    It is 2 for an error, and 3 if no cluster answers.
    """
    diffs: list[ConfigDiff] = []
    try:
        configs = read_all_connectors(files, recursive=recursive, name_of_nameless=name)
        client = find_client(options)
        for_each(configs, lambda each: diffs.append(_compare(client, each, configs[each])))
    except Failed as error:
        error.status = max(error.status, MISUSED)  # 1 is for a difference
        raise
    finally:
        if diffs:  # what is refused hides nothing of the others
            show(options.output, diffs, tabulate_config_diffs(diffs))
    if any(each.changes for each in diffs):
        raise Ended(FAILED)


@with_options(RemoteOptions)
@with_options(Choice)
def patch(
    choice: Choice,
    options: RemoteOptions,
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[KIND] [NAME...] [KEY=VALUE...]",
            help="Names of connectors, then the keys to set. KIND is connector.",
            complete=complete_changes,
        ),
    ] = None,
    *,
    keys: Annotated[
        list[str] | None,
        Option(
            "--key",
            "-s",
            metavar="KEY=VALUE",
            help="A key to set, as behind the names.",
            complete=complete_changes,
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        Option(
            "--remove",
            "-r",
            metavar="KEY",
            help="A key to remove; repeatable.",
            complete=complete_own_keys,
        ),
    ] = None,
) -> None:
    """Set and remove keys of the configs of connectors; their other keys stay."""
    words = [*(words or []), *(keys or [])]
    names, changes = _split_changes(words, remove or (), may_be_all=not choice.needs_names)
    choice.check(names)
    names = [*choice.read_names(), *names]
    _patch_all(options, names, changes, "patched", choice)


def _split_changes(
    words: Sequence[str], remove: Sequence[str], *, may_be_all: bool
) -> tuple[list[str], dict[str, str | None]]:
    """Return the names before the first change, and the changes; raises `Misused`."""
    named = split_words("patch", words, CONNECTORS, may_be_all=may_be_all).names
    names = [] if may_be_all else named[:1]  # which may have an equals sign
    names += takewhile(lambda each: "=" not in each, named[len(names) :])
    changes: dict[str, str | None] = {}
    for each in named[len(names) :]:
        key, separator, value = each.partition("=")
        if not separator or not key:
            raise Misused(f"{each!r} is no change: write KEY=VALUE, or --remove KEY")
        changes[key] = value
    changes |= dict.fromkeys(remove)
    if not changes and len(names) > 1:
        raise Misused(f"{names[-1]!r} is no change: write KEY=VALUE, or --remove KEY")
    if not changes:
        raise Misused("say what is to be changed: KEY=VALUE, or --remove KEY")
    return names, changes


@with_options(RemoteOptions)
@with_options(Choice)
def scale(
    choice: Choice,
    options: RemoteOptions,
    words: OfConnectors = None,
    *,
    tasks: Annotated[int, Option("--tasks", metavar="N", min=1, help="The new tasks.max.")],
) -> None:
    """Set how many tasks connectors may have at most."""
    split = split_choice("scale", words, CONNECTORS, choice)
    outcome = f"scaled to {tasks} tasks at most"
    _patch_all(options, split.names, {"tasks.max": str(tasks)}, outcome, choice)


@with_options(RemoteOptions)
@with_options(Choice)
def edit(choice: Choice, options: RemoteOptions, words: OfConnectors = None) -> None:
    """Change the configs of connectors in your editor: $VISUAL, $EDITOR or vi.

    One after the other. A secret is shown as ********, and stays unless you write another one.
    """
    client, names = find_connectors(options, "edit", words, choice)
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
            tell_changes(send_configs(client, {name: config}))
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
    choice: Choice,
) -> None:
    """Change keys of connectors, of none if one of several is unknown."""
    client = find_client(options)
    if choice.patterns or not choice.is_by_name:
        names = choose_connectors(client, names, choice)
    elif len(names) > 1:
        pick("connector", names, client.get(list[str], "connectors"), lambda name: [name])

    def change(name: str) -> None:
        patched = client.patch(ConnectorInfo, "connectors", name, "config", body=changes)
        tell_warnings(name, patched.warnings)
        say(f"connector {name} {outcome}")

    for_each(names, change)
