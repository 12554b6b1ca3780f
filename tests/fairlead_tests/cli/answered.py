"""Responses of a cluster, in Kafka Connect's formats and ours."""

from typing import Any

URL_1, URL_2 = "127.0.0.1:8083/w1", "127.0.0.1:8083/w2"
CLASS = "fairlead.runtime.connectors.spark_pipeline.SparkPipeline"
CONFIG = {"connector.class": CLASS, "name": "flights", "tasks.max": "2"}
FAILED_TASK = {
    "id": 1,
    "state": "FAILED",
    "worker_id": URL_2,
    "version": "1",
    "trace": "no such column: carrier\n  at line 3",
}
STATUS = {
    "name": "flights",
    "connector": {"state": "RUNNING", "worker_id": URL_1, "version": "1"},
    "tasks": [{"id": 0, "state": "RUNNING", "worker_id": URL_1, "version": "1"}, FAILED_TASK],
    "type": "source",
}
INFO = {
    "name": "flights",
    "config": CONFIG,
    "tasks": [{"connector": "flights", "task": 0}, {"connector": "flights", "task": 1}],
    "type": "source",
}
COMMITTED_MS = 1_357_000_000_000
DONE: dict[str, Any] = {
    "rows_in": 842,
    "rows_out": 840,
    "bytes_out": 10_240,
    "batches": 8,
    "unpublished": 0,
    "last_commit_ms": COMMITTED_MS,
    "lag": {"ranges": 3, "bytes": 1_200_000},
    "skipped": 0,
    "dead_letters": 0,
    "bytes_in": 0,
    "batch_ms": {},
    "rows_per_second": None,
}
NOTHING: dict[str, Any] = {
    "rows_in": 0,
    "rows_out": 0,
    "bytes_out": 0,
    "batches": 0,
    "unpublished": 0,
    "last_commit_ms": None,
    "lag": None,
    "skipped": 0,
    "dead_letters": 0,
    "bytes_in": 0,
    "batch_ms": {},
    "rows_per_second": None,
}
PROGRESS: dict[str, Any] = {"name": "flights", "tasks": [{"id": 0, **DONE}, {"id": 1, **NOTHING}]}
CONNECTORS: dict[str, Any] = {"flights": {"status": STATUS, "info": INFO, "progress": PROGRESS}}
TASKS: list[dict[str, Any]] = [
    {
        "connector": "flights",
        "task": 0,
        "state": "RUNNING",
        "worker_id": URL_1,
        "progress": DONE,
    },
    {
        "connector": "flights",
        "task": 1,
        "state": "FAILED",
        "worker_id": URL_2,
        "trace": FAILED_TASK["trace"],
        "progress": NOTHING,
    },
]


def resource(connector: str, task: int | None = None, **more: object) -> dict[str, Any]:
    name = connector if task is None else f"{connector}-{task}"
    return {"id": name, "connector": connector, "task": task, **more}


def member(member_id: str, url: str, held: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "member_id": member_id,
        "worker_id": url,
        "instance_id": None,
        "rack": None,
        "tags": [],
        "capacity": 1,
        "state": "STABLE",
        "member_epoch": 4,
        "assigned": held,
        "pending_revocation": [],
        "target": [resource(each["connector"], each["task"]) for each in held],
        "assignors": ["balanced"],
        "rebalance_timeout_ms": 60_000,
        "protocol": "connect",
    }


MEMBER_1 = member(
    "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
    URL_1,
    [resource("flights", grant_epoch=2), resource("flights", 0, grant_epoch=2)],
)
MEMBER_2 = member(
    "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", URL_2, [resource("flights", 1, grant_epoch=4)]
)
WORKERS: dict[str, Any] = {
    "processes_known": True,
    "workers": [
        {
            "name": "w1",
            "worker_id": URL_1,
            "group_id": "connect",
            "member": MEMBER_1,
            "order": None,
            "process": {"pid": 4711, "state": "running", "restarts": 0, "detail": ""},
        },
        {
            "name": "w2",
            "worker_id": URL_2,
            "group_id": "connect",
            "member": MEMBER_2,
            "order": {
                "worker": URL_2,
                "cordoned": True,
                "draining": False,
                "expected_back_ms": None,
                "removing": None,
            },
            "process": None,
        },
        {
            "name": "w3",
            "worker_id": "127.0.0.1:8083/w3",
            "group_id": None,
            "member": None,
            "order": None,
            "process": {"pid": None, "state": "backing-off", "restarts": 3, "detail": "killed"},
        },
    ],
}
GROUPS = [
    {
        "group_id": "connect",
        "type": "connect",
        "state": "Stable",
        "group_epoch": 4,
        "assignment_epoch": 4,
        "members": 2,
        "connectors": 1,
        "configured": 3,
        "assigned": 3,
        "assignor_error": "",
    }
]
GROUP: dict[str, Any] = {
    "group_id": "connect",
    "type": "connect",
    "state": "Stable",
    "group_epoch": 4,
    "assignment_epoch": 4,
    "last_rebalance": {
        "cause": "member-joined",
        "subject": URL_2,
        "time_ms": 1_357_000_000_000,
        "actor": None,
    },
    "members": [MEMBER_1, MEMBER_2],
    "target": {
        "assignment_epoch": 4,
        "assignor": "balanced",
        "computed_by": "",
        "time_ms": 1_357_000_000_000,
        "members": {},
        "unplaceable": [],
        "error": "",
        "failures": 0,
        "retry_at_ms": 0,
    },
    "configured": [resource("flights"), resource("flights", 0), resource("flights", 1)],
    "unassigned": [],
    "awaited": [],
    "parked": [],
    "next_moves_at_ms": None,
    "losses": [],
    "config": {"session.timeout.ms": "20000"},
    "worker_orders": [],
    "placements": [],
    "log_end": 42,
    "unknown_records": 0,
}
PLUGINS = [{"class": CLASS, "type": "source", "version": "1.0", "delivery": "exactly-once"}]
ASSIGNORS = {
    "assignors": [
        {"name": "balanced", "origin": "built in"},
        {"name": "mine", "origin": "entry point mine = shop:Mine of shop 1.2"},
    ],
    "processes_known": True,
    "processes": [{"pid": 77, "state": "running", "restarts": 1, "detail": ""}],
}
SHOWN: dict[str, Any] = {
    "group": "Common",
    "order_in_group": 0,
    "width": "MEDIUM",
    "dependents": [],
}
KEYS = [
    {
        "name": "source.path",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "HIGH",
        "documentation": "The folder that files land in.",
        **SHOWN,
        "display_name": "source.path",
    },
    {
        "name": "tasks.max",
        "type": "INT",
        "required": False,
        "default_value": "1",
        "importance": "HIGH",
        "documentation": "How many tasks at most share the work.",
        **SHOWN,
        "display_name": "tasks.max",
    },
]
TRANSFORM = {"class": "org.example.InsertField$Value", "type": "transformation", "version": "1"}
ROOT = {
    "version": "4.3.0",
    "commit": "unknown",
    "kafka_cluster_id": "abc",
    "fairlead_version": "0.1.0",
}
HEALTH = {"status": "healthy", "message": "group connect takes commands"}
DEGRADED = {
    "status": "degraded",
    "message": "group connect takes commands; of its connectors, tasks and workers: 1 FAILED,"
    " 1 worker processes down",
}

ANSWERS: dict[str, object] = {
    "/": ROOT,
    "/health": HEALTH,
    "/connectors?expand=status&expand=info&expand=progress": CONNECTORS,
    "/connectors/flights": INFO,
    "/connectors/flights/status": STATUS,
    "/connectors/flights/progress": PROGRESS,
    "/workers": WORKERS,
    "/groups": GROUPS,
    "/groups/connect": GROUP,
    "/connector-plugins": PLUGINS,
    "/connector-plugins?connectorsOnly=false": [*PLUGINS, TRANSFORM],
    "/assignors": ASSIGNORS,
    f"/connector-plugins/{CLASS}/config": KEYS,
}
