"""The command `apply`: all connectors of files in one epoch, or none, and those that no file has.

With --prune connectors that no file has are deleted: of those that --selector or --all names, as in
kubectl. They are named first, and nothing is done before somebody has agreed.
"""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import click
from msgspec import Struct

from ....replies.connectors import ConfigDiff
from ....replies.live.awaited import Awaited
from ....replies.node import Message
from ...adapters.parameters import Option
from ...output.printing import Failed, Misused, Output, say, say_aside, show, show_sections
from ...output.progress import show_progress
from ...requests.client import Client, find_client
from ...requests.files import ConnectorFiles, NameOfNameless, Recursive, read_all_connectors
from ...requests.options import with_options
from ...requests.resolving import fetch_labels
from ...requests.selecting import Requirement, Selector, parse_selector
from ...requests.several import for_each
from ...requests.waiting import WaitOptions, is_at_rest, wait_for
from ...tables.connectors import tabulate_config_diffs

EXAMINED_SECONDS: Final = 10.0
"""How much longer an answer may take for each config: a node examines four at once, 40 s each."""


@dataclass(frozen=True, slots=True)
class ApplyOptions(WaitOptions):
    """A cluster, and what is done beside the configs of files."""

    selector: Selector = None
    prune: Annotated[
        bool,
        Option("--prune", help="Delete those that no file has, of --selector or --all."),
    ] = False
    every: Annotated[bool, Option("--all", help="With --prune: of all connectors.")] = False
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask before something is deleted.")] = (
        False
    )
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only validate, and show what would change.")
    ] = False
    output: Annotated[Output, Option("--output", "-o", help="The output format.")] = Output.TABLE

    def requirements(self) -> list[Requirement]:
        """Return the conditions on labels; raises `Misused`."""
        if self.prune and (self.selector is None) is not self.every:
            raise Misused("--prune deletes what no file has of --selector LABELS, or of --all")
        if self.every and not self.prune:
            raise Misused("--all is of --prune: files say which connectors are applied")
        return [] if self.selector is None else parse_selector(self.selector)


class ApplyOutcome(Struct, frozen=True):
    """The changes of an `apply`, or those that there would be."""

    connectors: list[ConfigDiff]
    deleted: list[str]


@with_options(ApplyOptions)
def apply(
    options: ApplyOptions,
    files: ConnectorFiles,
    recursive: Recursive = False,
    name: NameOfNameless = "",
) -> None:
    """Create the connectors in files, or change their configs to those in the files.

    All of them in one epoch, or none if one is refused. A key that a file does not have is
    removed. Connectors that no file has stay as they are, unless --prune deletes them, and those
    that are paused or stopped stay so. With --selector only those in the files are applied that
    have the labels.
    """
    timeout_ms, requirements = options.timeout_ms(), options.requirements()
    named = read_all_connectors(files, recursive=recursive, name_of_nameless=name)
    configs = _select(named, requirements)
    client = find_client(options)
    pruned = _find_pruned(client, named.keys(), requirements) if options.prune else []
    if pruned and not (options.yes or options.dry_run):
        _require_consent(pruned)
    diffs = send_configs(client, configs, dry_run=options.dry_run) if configs else []
    if options.output is Output.TABLE:
        tell_changes(diffs, dry_run=options.dry_run)
    deleted = _delete(client, pruned, options)
    if options.output is not Output.TABLE:
        show(options.output, ApplyOutcome(diffs, deleted), ())
    if timeout_ms is not None and not options.dry_run:
        running = [name for name in configs if not is_at_rest(client, name)]
        wait_for(client, running, Awaited.RUNNING, timeout_ms)


def _select(
    named: Mapping[str, dict[str, str]], requirements: Collection[Requirement]
) -> Mapping[str, dict[str, str]]:
    """Return the connectors of files that have the labels; the others are told."""
    if not requirements:
        return named
    from .....pipeline.spi.keys.labels import read_labels  # noqa: PLC0415

    labels = {name: read_labels(config) for name, config in named.items()}
    chosen = {
        name: config
        for name, config in named.items()
        if all(each.accepts(labels[name]) for each in requirements)
    }
    if others := ", ".join(name for name in named if name not in chosen):
        say_aside(f"without these labels, and left out: {others}")
    return chosen


def _find_pruned(
    client: Client, named: Collection[str], requirements: Collection[Requirement]
) -> list[str]:
    """Return the connectors with the labels that no file has."""
    return [
        name
        for name, labels in fetch_labels(client).items()
        if name not in named and all(each.accepts(labels) for each in requirements)
    ]


def _require_consent(pruned: list[str]) -> None:
    """Ask whether connectors are to be deleted; raises `Failed`, `Misused`."""
    listed = ", ".join(pruned)
    if not sys.stdin.isatty():
        raise Misused(f"no file has {listed}: --prune --yes deletes them; nothing was changed")
    if not click.confirm(f"No file has {listed}. Delete them?", err=True):
        raise Failed("nothing was changed")


def _delete(client: Client, pruned: list[str], options: ApplyOptions) -> list[str]:
    """Delete connectors, or say which would be; return their names."""
    tell = say if options.output is Output.TABLE else say_aside
    deleted: list[str] = []

    def order(name: str) -> None:
        pending = None
        if not options.dry_run:
            pending = client.delete(Message, "connectors", name)
        outcome = "would be deleted" if options.dry_run else "deleted"
        tell(pending.message if pending else f"connector {name} {outcome}")
        deleted.append(name)

    for_each(pruned, order)
    return deleted


def send_configs(
    client: Client, configs: Mapping[str, Mapping[str, str]], *, dry_run: bool = False
) -> list[ConfigDiff]:
    """Create connectors and change configs, all or none; return what changed, or would."""
    connectors = [{"name": name, "config": config} for name, config in configs.items()]
    client.answer_seconds += EXAMINED_SECONDS * len(configs)
    body = {"connectors": connectors, "dry_run": dry_run}
    with show_progress(f"examining {len(configs)} configs"):
        return client.post(list[ConfigDiff], "apply", body=body)


def tell_changes(diffs: Collection[ConfigDiff], *, dry_run: bool = False) -> None:
    """Print what became of each connector, or would."""
    for each in diffs:
        outcome = "created" if each.is_new else "configured" if each.changes else "unchanged"
        say(f"connector {each.name} {'would be ' if dry_run else ''}{outcome}")
        if dry_run and each.changes:
            show_sections(tabulate_config_diffs([each]))
        tell_warnings(each.name, each.warnings)


def tell_warnings(name: str, warnings: Collection[str]) -> None:
    """Print the warnings about a connector's config."""
    for warning in warnings:
        say(f"warning: {name}: {warning}")
