"""The dashboard of all connectors, workers and nodes: what needs somebody stands on top."""

from panels import (
    GREEN,
    JSON,
    ORANGE,
    RED,
    graph,
    linked,
    quantiles,
    rate,
    rise,
    row,
    stacked,
    stat,
    table,
    timeline,
)

OF = 'job="fairlead",instance=~"$instance"'
FIRING = 'ALERTS{alertstate="firing",alertname=~"Fairlead.+"}'
CONNECTOR = "/d/fairlead-connector?var-datasource=${datasource}&var-connector="
FAILED = {1: RED}


def verdict() -> list[JSON]:
    """Return what needs somebody, in numbers and by name."""
    return [
        row("What needs you"),
        stat(
            3,
            "Alerts",
            "Alerts that fire now.",
            f"count({FIRING}) or vector(0)",
            steps=FAILED,
        ),
        stat(
            3,
            "Nodes down",
            "Nodes that do not answer Prometheus.",
            f"count(up{{{OF}}} == 0) or vector(0)",
            steps=FAILED,
        ),
        stat(
            3,
            "Failed connectors",
            "Connectors that no longer split their work.",
            f'sum(fairlead_connector_state{{{OF},state="failed"}}) or vector(0)',
            steps=FAILED,
        ),
        stat(
            3,
            "Failed tasks",
            "Tasks that wait for somebody.",
            f'sum(fairlead_connector_tasks{{{OF},state="failed"}}) or vector(0)',
            steps=FAILED,
        ),
        stat(
            3,
            "Wait for others",
            "Connectors and tasks whose database, broker or disk is away: they try again.",
            f'sum(fairlead_connector_hindered_resources{{{OF},error="outside"}}) or vector(0)',
            steps={1: ORANGE},
        ),
        stat(
            3,
            "Work for nobody",
            "Connectors and tasks that no worker can take.",
            f"sum(fairlead_connector_unplaceable_resources{{{OF}}}) or vector(0)",
            steps=FAILED,
        ),
        stat(
            3,
            "JVMs down",
            "JVMs that run no jobs.",
            f"count(fairlead_engine_up{{{OF}}} == 0) or vector(0)",
            steps=FAILED,
        ),
        stat(
            3,
            "Workers",
            "Workers that are in their groups.",
            f'sum(fairlead_group_members{{{OF},state!="away"}})',
        ),
        table(
            14,
            "Alerts that fire",
            "Each has a heading in docs/operating/alerts.md or connector-alerts.md.",
            FIRING,
            ("severity", "alertname", "instance", "group", "connector", "worker"),
        ),
        linked(
            table(
                10,
                "Furthest behind",
                "The ten connectors with the most bytes left to read.",
                f"topk(10, sum by (instance, connector) (fairlead_connector_lag_bytes{{{OF}}}))",
                ("connector", "instance"),
                unit="bytes",
            ),
            "Show the connector",
            f"{CONNECTOR}${{__data.fields.connector}}",
        ),
    ]


def work() -> list[JSON]:
    """Return what all connectors do together."""
    rows = rate("fairlead_connector_rows_in_total", "connector", of=OF)
    lag = f"topk(10, sum by (connector) (fairlead_connector_lag_bytes{{{OF}}}))"
    link = "Show the connector", f"{CONNECTOR}${{__field.labels.connector}}"
    return [
        row("Work"),
        linked(
            stacked(
                graph(
                    12,
                    "Rows read",
                    "Rows of batches that count; the ten connectors that read most.",
                    {"{{connector}}": f"topk(10, {rows})"},
                    unit="rowsps",
                )
            ),
            *link,
        ),
        linked(
            graph(
                12,
                "Left to read",
                "Bytes behind the last planned batch; the ten that are furthest behind.",
                {"{{connector}}": lag},
                unit="bytes",
            ),
            *link,
        ),
        stacked(
            graph(
                8,
                "Tasks by state",
                "All tasks of all connectors.",
                {"{{state}}": f"sum by (state) (fairlead_connector_tasks{{{OF}}})"},
            )
        ),
        stacked(
            graph(
                8,
                "Where the time of batches goes",
                "Seconds in a second; wait is for a place on the engine.",
                {"{{phase}}": rate("fairlead_connector_batch_seconds_total", "phase", of=OF)},
                unit="s",
            )
        ),
        stacked(
            graph(
                8,
                "Rows by lane",
                "Rows that Arrow alone read and wrote, and those that went through Spark.",
                {"{{lane}}": rate("fairlead_task_rows_total", "lane", of=OF)},
                unit="rowsps",
            )
        ),
    ]


def workers() -> list[JSON]:
    """Return the workers and the JVMs."""
    lost = rise("fairlead_worker_losses_total", "worker", "cause", of=OF)
    return [
        row("Workers and JVMs"),
        stacked(
            graph(
                8,
                "Work by worker",
                "Connectors and tasks that each worker holds.",
                {"{{worker}}": f"sum by (worker) (fairlead_worker_resources{{{OF}}})"},
            )
        ),
        graph(
            8,
            "Workers lost",
            "Processes that ended, and sessions that expired.",
            {"{{worker}} {{cause}}": lost},
        ),
        timeline(
            8,
            "JVMs",
            "Whether each JVM runs jobs; shared is that of all workers.",
            {"{{instance}} {{worker}}": f"fairlead_engine_up{{{OF}}}"},
            {1: ("up", GREEN), 0: ("down", RED)},
        ),
        graph(
            8,
            "Memory of JVMs",
            "What each has of the machine's memory, and how much of its heap objects take.",
            {
                "{{instance}} {{worker}}": f"fairlead_engine_resident_bytes{{{OF}}}",
                "{{instance}} {{worker}} heap": f"fairlead_engine_heap_used_bytes{{{OF}}}",
            },
            unit="bytes",
        ),
        graph(
            8,
            "Batches on JVMs",
            "Those that have a place, and those that wait for one.",
            {
                "{{instance}} run": f"fairlead_engine_running_batches{{{OF}}}",
                "{{instance}} wait": f"fairlead_engine_waiting_batches{{{OF}}}",
            },
        ),
        graph(
            8,
            "JVMs started again",
            "A JVM ends alone; its tasks go on with the next one.",
            {
                "{{instance}} {{worker}}": rise(
                    "fairlead_engine_restarts_total", "instance", "worker", of=OF
                )
            },
        ),
    ]


def nodes() -> list[JSON]:
    """Return the disks, REST and the versions of nodes."""
    return [
        row("Nodes"),
        graph(
            8,
            "Free on the disks",
            "Below 16 MiB commands are refused and batches wait; nothing is lost.",
            {"{{instance}} {{folder}}": f"fairlead_disk_free_bytes{{{OF}}}"},
            unit="bytes",
            limit=1e9,
        ),
        graph(
            8,
            "Size of the logs",
            "What the logs of groups take on the disk.",
            {"{{group}} {{log}}": f"sum by (group, log) (fairlead_log_size_bytes{{{OF}}})"},
            unit="bytes",
        ),
        graph(
            8,
            "Processes that do not answer",
            "They are killed and started again after process.answer.timeout.ms.",
            {"{{instance}}": f"fairlead_silent_processes{{{OF}}}"},
        ),
        stacked(
            graph(
                8,
                "REST answers",
                "By status: 401 and 403 are refusals, 5xx are failures.",
                {"{{code}}": rate("fairlead_rest_requests_total", "code", of=OF)},
                unit="reqps",
            )
        ),
        graph(
            8,
            "Duration of REST answers",
            "From a request's head to the end of its answer.",
            quantiles("fairlead_rest_request_duration_seconds", of=OF),
            unit="s",
        ),
        table(
            8,
            "Versions",
            "What each node runs.",
            f"fairlead_build_info{{{OF}}}",
            ("instance", "version"),
        ),
    ]


def panels() -> list[JSON]:
    """Return all panels, in order."""
    return [*verdict(), *work(), *workers(), *nodes()]
