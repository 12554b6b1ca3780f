"""The command `rollout`: the configs that a connector has had, and the way back to one of them."""

from typing import Annotated, Final

from ....replies.connectors import ConfigRevisionInfo, ConnectorInfo, RevisionList
from ....replies.live.awaited import Awaited
from ...adapters.parameters import Argument, Option
from ...output.layout import TableLayout
from ...output.phrases import format_time
from ...output.printing import FactList, Misused, say, show
from ...requests.client import Client, find_client
from ...requests.grammar import CONNECTORS, split_words
from ...requests.names import complete_names
from ...requests.options import RemoteOptions, RemoteReadOptions, with_options
from ...requests.several import AbsentError
from ...requests.waiting import (
    ONE_MINUTE,
    Timeout,
    WaitOptions,
    parse_duration,
    wait_for,
)
from .states import restart

_OneConnector = Annotated[
    list[str],
    Argument(
        metavar="[KIND] NAME",
        help="The name of a connector. KIND is connector.",
        complete=complete_names(CONNECTORS),
    ),
]
REVISIONS: Final = TableLayout(
    ConfigRevisionInfo,
    "REVISION: revision, TIME: time_ms, BY: actor, CHANGED: changed",
    {"TIME": format_time, "CHANGED": ", ".join},
    folded=("CHANGED",),
)


@with_options(RemoteOptions)
def status(options: RemoteOptions, words: _OneConnector, *, timeout: Timeout = ONE_MINUTE) -> None:
    """Return when a connector and all its tasks run; what keeps them from it is told at once."""
    timeout_ms = parse_duration(timeout)
    name = _one("rollout status", words)
    wait_for(find_client(options), [name], Awaited.RUNNING, timeout_ms, is_patient=False)


@with_options(RemoteReadOptions)
def history(
    options: RemoteReadOptions,
    words: _OneConnector,
    *,
    revision: Annotated[
        int | None, Option("--revision", metavar="N", help="Show the whole config of this one.")
    ] = None,
) -> None:
    """List the configs that a connector has had, with the keys that each has changed.

    The log has them, the present one last. Secrets are not shown.
    """
    name = _one("rollout history", words)
    revisions = _fetch_revisions(find_client(options), name)
    if revision is None:
        show(options.output, revisions, [REVISIONS.lay_out(revisions)])
        return
    for each in revisions:
        if each.revision == revision:
            config = FactList(sorted(each.config.items()), "Config")
            show(options.output, each, [REVISIONS.lay_out_facts(each), config])
            return
    there = ", ".join(str(each.revision) for each in revisions)
    raise AbsentError(f"connector {name} has no revision {revision}; there is: {there}")


@with_options(WaitOptions)
def undo(
    options: WaitOptions,
    words: _OneConnector,
    *,
    to_revision: Annotated[
        int | None,
        Option("--to-revision", metavar="N", help="As `rollout history` shows it."),
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only show which keys would change.")
    ] = False,
) -> None:
    """Give a connector the config again that it had before, or another one of its history.

    Its secrets are those of then. Offsets stay as they are. What was undone is a revision, too.
    """
    timeout_ms = options.timeout_ms()
    name = _one("rollout undo", words)
    client = find_client(options)
    if dry_run:
        _tell_undo(client, name, to_revision)
        return
    path = "connectors", name, "rollback"
    restored = client.post(ConnectorInfo, *path, body={"revision": to_revision})
    before = "the one before" if to_revision is None else f"revision {to_revision}"
    say(f"connector {name} has its config of {before} again")
    for warning in restored.warnings:
        say(f"warning: {name}: {warning}")
    if timeout_ms is not None:
        wait_for(client, [name], Awaited.RUNNING, timeout_ms)


def _tell_undo(client: Client, name: str, to_revision: int | None) -> None:
    """Say which keys an undo would change; raises `Failed`."""
    revisions = _fetch_revisions(client, name)
    wanted = [each for each in revisions if each.revision == to_revision]
    target = revisions[-2:-1] if to_revision is None else wanted
    if not target:
        there = ", ".join(str(each.revision) for each in revisions)
        raise AbsentError(f"connector {name} has no such revision to go back to; there is: {there}")
    later = revisions[revisions.index(target[0]) + 1 :]
    keys = sorted({key for each in later for key in each.changed})
    say(f"connector {name} would change: {', '.join(keys) or 'nothing'}")


def _fetch_revisions(client: Client, name: str) -> list[ConfigRevisionInfo]:
    return client.get(RevisionList, "connectors", name, "revisions").revisions


def _one(verb: str, words: list[str]) -> str:
    names = split_words(verb, words, CONNECTORS).names
    if len(names) > 1:
        raise Misused(f"`fairlead {verb}` is of one connector")
    return names[0]


VERBS: Final = {"status": status, "history": history, "undo": undo, "restart": restart}
