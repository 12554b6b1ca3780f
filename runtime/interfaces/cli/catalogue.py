"""All verbs of the command line: where each is, and what `--help` says of it.

A verb's module is imported when the verb is called: a command that asks one question of a cluster
does not load what the others need.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class Panel(StrEnum):
    """The parts of `fairlead --help`."""

    RUN = "Run"
    LOOK = "Look"
    CHANGE = "Change"


class Verb(NamedTuple):
    """A verb that is not imported yet."""

    panel: Panel
    target: str
    """Its module, and its function there; a module alone has a table `VERBS`."""
    help: str
    """The first paragraph of its docstring."""


def _list_verbs(panel: Panel, module: str, **helps: str) -> dict[str, Verb]:
    """Return the verbs of a module, whose functions are called as they are."""
    return {
        name.replace("_", "-"): Verb(panel, f"{module}:{name}", text)
        for name, text in helps.items()
    }


RUN, LOOK, CHANGE = Panel
VERBS: Final = {
    **_list_verbs(
        RUN,
        "verbs.node",
        up="Run this node in the foreground: actors, groups, workers, REST. Ctrl-C ends it.",
        down="Stop the node that runs on this data folder; its workers leave gracefully.",
        worker="Run one more worker on the running node. Ctrl-C ends it.",
        prepare="Have Spark start a third sooner from now on, by an archive of its "
        "classes (180 MB).",
        demo="Watch a year of flights pass; a worker joins, one is killed, no row is lost.",
    ),
    **_list_verbs(
        RUN,
        "offline.simulate",
        simulate="Simulate groups under faults, and check that no rule of the protocol is broken.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.reading",
        status="Show the health, groups, workers, connectors and tasks of the "
        "cluster; or one group.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.listing",
        get="List connectors, tasks, workers and so on: all, or those that are named.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.reading",
        describe="Show connectors, tasks, workers, groups, plugins, or types of sources "
        "and sinks in full.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.group.history",
        history="List the last epochs: cause, user, what moved, stayed and waits, how "
        "long it took.",
        explain="Explain an epoch: its cause, its target, how long each phase took, "
        "what moved and why.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.group.plan",
        plan="Show what would move, start, stop and stay after changes; change nothing.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.connectors.configs",
        diff="Show what `apply` of files would change; the exit code is 1 if that is anything.",
    ),
    **_list_verbs(
        LOOK,
        "offline.translate",
        translate="Write fairlead's configs for those of Kafka Connect's well-known connectors.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.top",
        top="Measure what each task reads and writes per second, and what it has left to read.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.logs",
        logs="Print the log files of this node, also of one that has ended, in the "
        "order of their times.",
    ),
    **_list_verbs(
        LOOK,
        "offline.docs",
        docs="Show a page of the documentation in the terminal, or the list of all pages.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.node",
        config="Show every setting: its value, default, unit and meaning, and where "
        "its value is from.",
    ),
    "log": Verb(
        LOOK,
        "verbs.group.log",
        "Read, check and copy a group's logs, also without a running cluster.",
    ),
    **_list_verbs(
        CHANGE,
        "verbs.connectors.configs",
        create="Create connectors from files: each is {name, config}, or a plain "
        "config with its name.",
        apply="Create the connectors in files, or change their configs to those in the files.",
        patch="Set and remove keys of the configs of connectors; their other keys stay.",
        scale="Set how many tasks connectors may have at most.",
        edit="Change the configs of connectors in your editor: $VISUAL, $EDITOR or vi.",
    ),
    **_list_verbs(
        CHANGE,
        "verbs.connectors.states",
        delete="Delete connectors: their tasks stop, their offsets stay.",
        pause="Pause connectors: their tasks stay on their workers and begin no batch.",
        resume="Resume connectors that are paused or stopped.",
        stop="Stop connectors: their tasks end once what they committed is published.",
        restart="Restart connectors, tasks, or everything of the connectors that has failed.",
        wait="Return when connectors are in a state; running: and all their tasks, too.",
    ),
    **_list_verbs(
        CHANGE,
        "verbs.logs",
        log_level="Set the level of a logger, in all processes of the node until it ends.",
    ),
    **_list_verbs(
        CHANGE,
        "verbs.group.workers",
        cordon="Give a worker no new work; it keeps what it has.",
        uncordon="Let a worker get work again: ends a cordon or a drain.",
        drain="Give workers no new work, and take away what they have.",
        expect="If a worker is lost or leaves, keep its work for it until it is back "
        "or the time is over.",
        remove="Remove workers: each gives up its work and leaves, and its process ends for good.",
        rebalance="Compute a new target for the group, although nothing has changed.",
    ),
    "offsets": Verb(
        CHANGE, "verbs.connectors.offsets", "Show, set, reset and seek the offsets of a connector."
    ),
}
