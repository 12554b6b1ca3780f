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
    below: str = ""
    """A module with a table `VERBS` of what may stand behind it."""


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
        "offline.doctor",
        doctor="Check what a node needs of this machine; each thing that is wrong has a command to"
        " mend it.",
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
        describe="Show connectors, tasks, workers, groups, plugins, nodes, or types of sources "
        "and sinks.",
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
        "verbs.events",
        events="List what happened: connectors that changed, what started, stopped, moved and "
        "failed.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.connectors.dead_letters",
        dead_letters="List the dead letters of a connector, the newest first, or retry them.",
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
        "verbs.connectors.sample",
        sample="Show ten rows as configs would have them read, before and after their transforms.",
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
        logs="Print the log files of a node, in the order of their times; here also of one that "
        "has ended.",
    ),
    **_list_verbs(
        LOOK,
        "verbs.versions",
        version="Show the versions of this program and of the node that it asks, and what chose "
        "that node.",
        cluster_info="Show where the cluster is: its address, what chose it, its health, its "
        "metrics and REST.",
    ),
    **_list_verbs(
        LOOK,
        "offline.support",
        support_bundle="Write what somebody who helps has to know into one file, without secrets.",
    ),
    **_list_verbs(
        LOOK,
        "offline.lint",
        lint="Check configs in files without a node; the exit code is 1 if one has an error.",
    ),
    **_list_verbs(
        LOOK,
        "offline.schema",
        schema="Print the JSON Schema of connector configs, with all keys that are installed here.",
    ),
    "generate": Verb(LOOK, "offline.schema", "Print a config to start from."),
    **_list_verbs(
        LOOK,
        "offline.docs",
        docs="Show a page of the documentation in the terminal, or the list of all pages.",
    ),
    **_list_verbs(
        LOOK,
        "offline.deploy_files",
        examples="List the examples and the files for other programs that are installed, or write "
        "some.",
    ),
    "config": Verb(
        LOOK,
        "verbs.node:config",
        "Show every setting: its value, default, unit and meaning, and where its value is from.",
        below="verbs.contexts",
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
        patch="Set and remove keys of the configs of connectors; their other keys stay.",
        scale="Set how many tasks connectors may have at most.",
        edit="Change the configs of connectors in your editor: $VISUAL, $EDITOR or vi.",
    ),
    **_list_verbs(
        CHANGE,
        "verbs.connectors.applying",
        apply="Create the connectors in files, or change their configs to those in the files.",
    ),
    "import": Verb(
        CHANGE,
        "importing.verb:import_connectors",
        "Import the connectors of a running Kafka Connect, one after the other, or return them.",
    ),
    **_list_verbs(
        CHANGE,
        "verbs.connectors.states",
        delete="Delete connectors: their tasks stop, their offsets stay.",
        pause="Pause connectors: their tasks stay on their workers and begin no batch.",
        resume="Resume connectors that are paused or stopped.",
        stop="Stop connectors: their tasks end once what they committed is published.",
        restart="Restart connectors, tasks, or everything of the connectors that has failed.",
        wait="Return when connectors or workers are in a state; running: and all their tasks, too.",
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
    **_list_verbs(
        CHANGE,
        "verbs.group.settings",
        group_config="Show the settings that a group has of its own, or set and reset some.",
    ),
    "owner": Verb(
        CHANGE,
        "verbs.group.owner",
        "Move the group to another node of the cluster: that one owns it from then on.",
    ),
    "kafka-user": Verb(
        CHANGE,
        "offline.kafka_users",
        "Add, list and remove the users of the Kafka listener, also without a running node.",
    ),
    "plugins": Verb(
        CHANGE,
        "offline.plugins",
        "Add, fetch, list, verify and remove the plugins of Kafka Connect that this node has.",
    ),
    "auth": Verb(
        CHANGE,
        "verbs.auth",
        "Add, list and revoke users, tokens and certificates of a node; show who you are.",
    ),
    "rollout": Verb(
        CHANGE,
        "verbs.connectors.rollout",
        "Show the configs that a connector has had, and go back to one of them.",
    ),
    "offsets": Verb(
        CHANGE, "verbs.connectors.offsets", "Show, set, reset and seek the offsets of a connector."
    ),
}

HABITS: Final = {
    "info": "cluster-info",
    "health": "status",
    "ps": "status",
    "list": "get connectors",
    "ls": "get connectors",
    "rm": "delete NAME",
    "start": "resume NAME",
    "run": "up",
    "replace": "apply -f FILE",
    "update": "apply -f FILE",
    "label": "patch NAME labels=team=a",
    "annotate": "patch NAME labels=team=a",
    "taint": "cordon WORKER",
    "tail": "logs -f",
    "watch": "get KIND --watch",
    "migrate": "import --from URL --worker-config FILE",
    "restore": "docs operating/backup",
    "validate": "lint FILE",
    "completion": "--install-completion SHELL",
    "api-resources": "get --help",
    "plugin": "get plugins",
    "connectors": "get connectors",
    "tasks": "get tasks",
    "workers": "get workers",
    "groups": "get groups",
    "rollout pause": "pause NAME",
    "rollout resume": "resume NAME",
    "offsets list": "offsets get NAME",
    "offsets patch": "offsets set NAME",
    "offsets delete": "offsets reset NAME",
    "auth user list": "auth list",
    "auth token list": "auth list",
    "auth user remove": "auth revoke NAME",
    "auth token revoke": "auth revoke NAME",
    "config view": "config get-contexts",
    **{
        f"{verb}-context{plural}": f"config {verb}-context{plural}"
        for verb, plural in (
            *(("set", ""), ("use", ""), ("current", ""), ("get", "s")),
            *(("rename", ""), ("delete", ""), ("remove", "")),
        )
    },
}
"""Verbs of kcctl, kubectl and the like that people type, and what stands for them here."""
