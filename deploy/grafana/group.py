"""The dashboard of a group: epochs, rebalances, workers, coordinator, log."""

from panels import JSON, graph, heatmap, quantiles, rate, rise, row, stacked

OF = 'group=~"$group"'
WORKERS = f'{OF},worker=~"$worker"'


def epochs() -> list[JSON]:
    """Return the epochs, their causes, and how long they take."""
    return [
        row("Epochs and rebalances"),
        graph(
            8,
            "Epochs",
            "The second line is behind while nobody has answered the first.",
            {
                "{{group}} epoch": f"fairlead_group_epoch{{{OF}}}",
                "{{group}} assignment": f"fairlead_group_assignment_epoch{{{OF}}}",
            },
        ),
        stacked(
            graph(
                8,
                "State",
                "Assigning: a target is computed; reconciling: members get to it.",
                {"{{state}}": f"sum by (state) (fairlead_group_state{{{OF}}} == 1)"},
            )
        ),
        stacked(
            graph(
                8,
                "Rebalances by cause",
                "Rises of the epoch: `fairlead history` has each.",
                {"{{cause}}": rise("fairlead_group_rebalances_total", "cause", of=OF)},
            )
        ),
        graph(
            12,
            "How long rebalances take",
            "From the cause of an epoch until everything ran again.",
            quantiles("fairlead_group_rebalance_seconds", of=OF),
            unit="s",
            limit=60,
        ),
        heatmap(
            12,
            "Rebalances",
            "How often they took how many seconds.",
            "fairlead_group_rebalance_seconds",
            of=OF,
        ),
        graph(
            12,
            "How long moved work stands still",
            "For how long nobody ran what went from one worker to another.",
            quantiles("fairlead_group_move_seconds", of=OF),
            unit="s",
        ),
        heatmap(
            12,
            "Moves",
            "How often work stood still for how many seconds.",
            "fairlead_group_move_seconds",
            of=OF,
        ),
    ]


def members() -> list[JSON]:
    """Return the workers and their work."""
    lost = rise("fairlead_worker_losses_total", "worker", "cause", of=WORKERS)
    kinds = ("configured", "assigned", "parked", "awaited", "unplaceable")
    return [
        row("Workers and work"),
        stacked(
            graph(
                8,
                "Work by worker",
                "Connectors and tasks that each worker holds.",
                {"{{worker}}": f"sum by (worker) (fairlead_worker_resources{{{WORKERS}}})"},
            )
        ),
        stacked(
            graph(
                8,
                "Members by state",
                "unrevoked: asked to give work up; unreleased: waits for what others hold.",
                {"{{state}}": f"sum by (state) (fairlead_group_members{{{OF}}})"},
            )
        ),
        graph(
            8,
            "Work that runs, and that does not",
            "parked waits for a lost worker, awaited for one that left for a while.",
            {each: f"sum(fairlead_group_{each}_resources{{{OF}}})" for each in kinds},
        ),
        graph(
            12,
            "Workers lost",
            "Processes that ended, and sessions that expired.",
            {"{{worker}} {{cause}}": lost},
        ),
        graph(
            12,
            "Until waiting work is due",
            "Then others get the work of a lost worker, or more of the moves begin.",
            {
                "{{group}} parked": (
                    f"fairlead_group_next_deadline_timestamp_seconds{{{OF}}} - time() > 0"
                ),
                "{{group}} moves": (
                    f"fairlead_group_next_moves_timestamp_seconds{{{OF}}} - time() > 0"
                ),
            },
            unit="s",
        ),
    ]


def coordinator() -> list[JSON]:
    """Return how the group's process gets on, and its logs."""
    phases = rate("fairlead_coordinator_seconds_bucket", "phase", "le", of=OF)
    busy = rate("fairlead_coordinator_busy_seconds_total", "group", of=OF)
    appended = f"deriv(fairlead_log_end_offset{{{OF}}}[$__rate_interval])"
    return [
        row("Coordinator and logs"),
        graph(
            8,
            "Time of requests by phase",
            "99 of 100 are quicker: queue, decide, append (the disk), answer.",
            {"{{phase}}": f"histogram_quantile(0.99, {phases})"},
            unit="s",
            limit=0.5,
        ),
        graph(
            8,
            "How busy it is",
            "The share of the time in which it works.",
            {"{{group}}": busy},
            unit="percentunit",
            limit=0.8,
        ),
        graph(
            8,
            "Requests and refusals",
            "What it decides, and what it answers with an error.",
            {
                "decided": rate("fairlead_coordinator_requests_total", of=OF),
                "{{error}}": rate("fairlead_coordinator_refusals_total", "error", of=OF),
            },
            unit="reqps",
        ),
        graph(
            8,
            "Heartbeats",
            "Taken in a second, and held until there is news.",
            {
                "{{group}} taken": rate("fairlead_group_heartbeats_total", "group", of=OF),
                "{{group}} held": f"fairlead_group_heartbeats_held{{{OF}}}",
            },
        ),
        graph(
            8,
            "Entries of the logs",
            "How many are appended in a second.",
            {"{{group}} {{log}}": appended},
            unit="ops",
        ),
        graph(
            8,
            "Size of the logs",
            "What they take on the disk.",
            {"{{group}} {{log}}": f"fairlead_log_size_bytes{{{OF}}}"},
            unit="bytes",
        ),
    ]


def kafka_clients() -> list[JSON]:
    """Return the groups of Kafka's clients, of all shards."""
    return [
        row("Groups of Kafka's clients"),
        stacked(
            graph(
                8,
                "Groups of Kafka's clients",
                "On all shards; `fairlead get groups` lists them by name.",
                {"{{type}} {{state}}": "sum by (type, state) (fairlead_kafka_groups > 0)"},
            )
        ),
        stacked(
            graph(
                8,
                "Their rebalances by cause",
                "Rises of their epochs and generations.",
                {"{{cause}}": rise("fairlead_kafka_group_rebalances_total", "cause")},
            )
        ),
        stacked(
            graph(
                8,
                "Their requests",
                "Calls of clients to the listener.",
                {"{{api}}": rate("fairlead_kafka_requests_total", "api")},
                unit="reqps",
            )
        ),
    ]


def panels() -> list[JSON]:
    """Return all panels, in order."""
    return [*epochs(), *members(), *coordinator(), *kafka_clients()]
