"""The dashboard of one connector, or of several: flow, lag, batches, failures."""

from panels import JSON, ORANGE, RED, graph, rate, rise, row, stacked, stat

OF = 'group=~"$group",connector=~"$connector"'
BATCHES = f"sum(rate(fairlead_connector_batches_total{{{OF}}}[$__rate_interval]))"
ROWS = f"sum(rate(fairlead_connector_rows_in_total{{{OF}}}[$__rate_interval]))"
LAST = f"fairlead_connector_last_commit_timestamp_seconds{{{OF}}}"
OLDEST = f"fairlead_connector_oldest_commit_timestamp_seconds{{{OF}}}"


def verdict() -> list[JSON]:
    """Return how the connector is, in numbers."""
    return [
        row("How it is"),
        stat(
            4,
            "Tasks that run",
            "Of all its tasks.",
            f'sum(fairlead_connector_tasks{{{OF},state="running"}}) or vector(0)',
        ),
        stat(
            4,
            "Failed tasks",
            "`fairlead describe` gives the reasons.",
            f'sum(fairlead_connector_tasks{{{OF},state="failed"}}) or vector(0)',
            steps={1: RED},
        ),
        stat(4, "Rows read", "Rows of batches that count.", ROWS, unit="rowsps"),
        stat(
            4,
            "Left to read",
            "Bytes behind the last planned batch.",
            f"sum(fairlead_connector_lag_bytes{{{OF}}})",
            unit="bytes",
        ),
        stat(
            4,
            "Nothing committed for",
            "By the task that waits longest of those that had left something to read.",
            f"time() - min({OLDEST}) or vector(0)",
            unit="s",
        ),
        stat(
            4,
            "Not in place",
            "Batches that count, and that readers of the target do not see yet.",
            f"sum(fairlead_connector_unpublished_batches{{{OF}}})",
            steps={10: ORANGE},
        ),
    ]


def flow() -> list[JSON]:
    """Return rows and bytes, and what is left to read."""
    return [
        row("Rows and lag"),
        graph(
            12,
            "Rows",
            "Rows of batches that count.",
            {
                "{{connector}} read": rate("fairlead_connector_rows_in_total", "connector", of=OF),
                "{{connector}} written": rate(
                    "fairlead_connector_rows_out_total", "connector", of=OF
                ),
            },
            unit="rowsps",
        ),
        graph(
            12,
            "Bytes",
            "Bytes of batches that count.",
            {
                "{{connector}} read": rate("fairlead_connector_in_bytes_total", "connector", of=OF),
                "{{connector}} written": rate(
                    "fairlead_connector_out_bytes_total", "connector", of=OF
                ),
            },
            unit="Bps",
        ),
        graph(
            8,
            "Bytes left to read",
            "Behind the last planned batch.",
            {"{{connector}}": f"fairlead_connector_lag_bytes{{{OF}}}"},
            unit="bytes",
        ),
        graph(
            8,
            "Records left to read",
            "Where the source knows them, as Kafka does.",
            {"{{connector}}": f"fairlead_connector_lag_records{{{OF}}}"},
        ),
        graph(
            8,
            "Age of the last commit",
            "A task that is stuck raises the second line alone.",
            {
                "{{connector}} any task": f"time() - {LAST}",
                "{{connector}} the task that waits longest": f"time() - ({OLDEST} or {LAST})",
            },
            unit="s",
            limit=900,
        ),
    ]


def batches() -> list[JSON]:
    """Return the batches, and where their time goes."""
    seconds = rate("fairlead_connector_batch_seconds_total", "phase", of=OF)
    return [
        row("Batches"),
        graph(
            8,
            "Batches",
            "Batches that count.",
            {"{{connector}}": rate("fairlead_connector_batches_total", "connector", of=OF)},
            unit="ops",
        ),
        stacked(
            graph(
                8,
                "Time of a batch by phase",
                "The mean; wait is for a place on the engine.",
                {"{{phase}}": f"{seconds} / on () group_left () ({BATCHES} > 0)"},
                unit="s",
            )
        ),
        graph(
            8,
            "Rows of a batch",
            "The mean. Small batches cost more: docs/connectors/batches.md.",
            {"rows": f"{ROWS} / ({BATCHES} > 0)"},
        ),
    ]


def troubles() -> list[JSON]:
    """Return states, failures and bad rows."""
    tasks = "connector", "task"
    return [
        row("States and failures"),
        stacked(
            graph(
                8,
                "Tasks by state",
                "FAILED ones wait for somebody, RESTARTING ones for their next try.",
                {"{{state}}": f"sum by (state) (fairlead_connector_tasks{{{OF}}})"},
            )
        ),
        stacked(
            graph(
                8,
                "The connector itself",
                "What splits the work into tasks.",
                {"{{state}}": f"sum by (state) (fairlead_connector_state{{{OF}}} == 1)"},
            )
        ),
        stacked(
            graph(
                8,
                "Who can mend it",
                "config: its owner; input: that of the data; outside: that of another system.",
                {"{{error}}": f"sum by (error) (fairlead_connector_hindered_resources{{{OF}}})"},
            )
        ),
        graph(
            8,
            "Restarts",
            "Of the connector and its tasks, after failures.",
            {"{{connector}}": rise("fairlead_connector_restarts_total", "connector", of=OF)},
        ),
        graph(
            8,
            "Bad rows",
            "Rows that are left out, and those of them that are kept as dead letters.",
            {
                "{{connector}}-{{task}} left out": rate(
                    "fairlead_task_skipped_rows_total", *tasks, of=OF
                ),
                "{{connector}}-{{task}} dead letters": rate(
                    "fairlead_task_dead_letters_total", *tasks, of=OF
                ),
            },
            unit="rowsps",
        ),
        graph(
            8,
            "What waits",
            "Resources for a worker, batches to be published, tasks that never committed.",
            {
                "{{connector}} for a worker": f"fairlead_connector_unplaceable_resources{{{OF}}}",
                "{{connector}} batches": f"fairlead_connector_unpublished_batches{{{OF}}}",
                "{{connector}} new tasks": f"fairlead_connector_uncommitted_tasks{{{OF}}}",
            },
        ),
    ]


def panels() -> list[JSON]:
    """Return all panels, in order."""
    return [*verdict(), *flow(), *batches(), *troubles()]
