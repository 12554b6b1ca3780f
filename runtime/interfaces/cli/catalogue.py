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


RUN, LOOK, CHANGE = Panel
VERBS: Final = {
    "up": Verb(
        RUN,
        "verbs.node:up",
        "Run this node in the foreground: actors, groups, workers, REST. Ctrl-C ends it.",
    ),
    "down": Verb(
        RUN,
        "verbs.node:down",
        "Stop the node that runs on this data folder; its workers leave gracefully.",
    ),
    "worker": Verb(
        RUN, "verbs.node:worker", "Run one more worker on the running node. Ctrl-C ends it."
    ),
    "prepare": Verb(
        RUN,
        "verbs.node:prepare",
        "Have Spark start a third sooner from now on, by an archive of its classes (180 MB).",
    ),
    "demo": Verb(
        RUN,
        "verbs.node:demo",
        "Watch a year of flights pass; a worker joins, one is killed, no row is lost.",
    ),
    "simulate": Verb(
        RUN,
        "offline.simulate:simulate",
        "Simulate groups under faults, and check that no rule of the protocol is broken.",
    ),
    "status": Verb(
        LOOK,
        "verbs.reading:status",
        "Show the health, groups, workers, connectors and tasks of the cluster; or one group.",
    ),
    "get": Verb(
        LOOK,
        "verbs.listing:get",
        "List connectors, tasks, workers and so on: all, or those that are named.",
    ),
    "describe": Verb(
        LOOK,
        "verbs.reading:describe",
        "Show connectors, tasks, workers, groups, plugins, or types of sources and sinks in full.",
    ),
    "history": Verb(
        LOOK,
        "verbs.group.history:history",
        "List the last epochs: cause, user, what moved, stayed and waits, how long it took.",
    ),
    "explain": Verb(
        LOOK,
        "verbs.group.history:explain",
        "Explain an epoch: its cause, its target, how long each phase took, what moved and why.",
    ),
    "plan": Verb(
        LOOK,
        "verbs.group.plan:plan",
        "Show what would move, start, stop and stay after changes; change nothing.",
    ),
    "diff": Verb(
        LOOK,
        "verbs.connectors.configs:diff",
        "Show what `apply` of files would change; the exit code is 1 if that is anything.",
    ),
    "translate": Verb(
        LOOK,
        "offline.translate:translate_files",
        "Write fairlead's configs for those of Kafka Connect's well-known connectors.",
    ),
    "top": Verb(
        LOOK,
        "verbs.top:top",
        "Measure what each task reads and writes per second, and what it has left to read.",
    ),
    "logs": Verb(
        LOOK,
        "verbs.logs:logs",
        "Print the log files of this node, also of one that has ended, in the order of "
        "their times.",
    ),
    "config": Verb(
        LOOK,
        "verbs.node:config",
        "Show every setting: its value, default, unit and meaning, and where its value is from.",
    ),
    "log": Verb(
        LOOK,
        "verbs.group.log",
        "Read, check and copy a group's logs, also without a running cluster.",
    ),
    "create": Verb(
        CHANGE,
        "verbs.connectors.configs:create",
        "Create connectors from files: each is {name, config}, or a plain config with its name.",
    ),
    "apply": Verb(
        CHANGE,
        "verbs.connectors.configs:apply",
        "Create the connectors in files, or change their configs to those in the files.",
    ),
    "patch": Verb(
        CHANGE,
        "verbs.connectors.configs:patch",
        "Set and remove keys of the configs of connectors; their other keys stay.",
    ),
    "scale": Verb(
        CHANGE, "verbs.connectors.configs:scale", "Set how many tasks connectors may have at most."
    ),
    "edit": Verb(
        CHANGE,
        "verbs.connectors.configs:edit",
        "Change the configs of connectors in your editor: $VISUAL, $EDITOR or vi.",
    ),
    "delete": Verb(
        CHANGE,
        "verbs.connectors.states:delete",
        "Delete connectors: their tasks stop, their offsets stay.",
    ),
    "pause": Verb(
        CHANGE,
        "verbs.connectors.states:pause",
        "Pause connectors: their tasks stay on their workers and begin no batch.",
    ),
    "resume": Verb(
        CHANGE, "verbs.connectors.states:resume", "Resume connectors that are paused or stopped."
    ),
    "stop": Verb(
        CHANGE,
        "verbs.connectors.states:stop",
        "Stop connectors: their tasks end once what they committed is published.",
    ),
    "restart": Verb(
        CHANGE,
        "verbs.connectors.states:restart",
        "Restart connectors, tasks, or everything of the connectors that has failed.",
    ),
    "wait": Verb(
        CHANGE,
        "verbs.connectors.states:wait",
        "Return when connectors are in a state; running: and all their tasks, too.",
    ),
    "log-level": Verb(
        CHANGE,
        "verbs.logs:log_level",
        "Set the level of a logger, in all processes of the node until it ends.",
    ),
    "cordon": Verb(
        CHANGE, "verbs.group.workers:cordon", "Give a worker no new work; it keeps what it has."
    ),
    "uncordon": Verb(
        CHANGE,
        "verbs.group.workers:uncordon",
        "Let a worker get work again: ends a cordon or a drain.",
    ),
    "drain": Verb(
        CHANGE,
        "verbs.group.workers:drain",
        "Give workers no new work, and take away what they have.",
    ),
    "expect": Verb(
        CHANGE,
        "verbs.group.workers:expect",
        "If a worker is lost or leaves, keep its work for it until it is back or the time is over.",
    ),
    "remove": Verb(
        CHANGE,
        "verbs.group.workers:remove",
        "Remove workers: each gives up its work and leaves, and its process ends for good.",
    ),
    "rebalance": Verb(
        CHANGE,
        "verbs.group.workers:rebalance",
        "Compute a new target for the group, although nothing has changed.",
    ),
    "offsets": Verb(
        CHANGE, "verbs.connectors.offsets", "Show, set, reset and seek the offsets of a connector."
    ),
}
