import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rest.conftest import RestApi, service_over

from fairlead.actors.messages.members import Heartbeat
from fairlead.events.entries.codec import encode
from fairlead.events.group import MANY_EPOCHS, epoch_warning
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.process import ProcessId, process_of
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata
from fairlead.runtime.cluster.messages import ProcessView
from fairlead.runtime.cluster.node_files import (
    EngineFile,
    SlowProcess,
    engine_file,
    write_engine,
    write_slow,
)
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead_tests.decider import JOIN
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.rest.group_process import GroupProcess

LOCKED = {"connector.class": "Locked"}
W1 = "127.0.0.1:8083/w1"
A = {"id": "a", "connector": "a", "task": None}
A0 = {"id": "a-0", "connector": "a", "task": 0}


def test_the_status_of_a_node_is_all_of_its_parts_in_one_answer(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json=LOCKED)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    expanded = "/connectors?extended=true&expand=status&expand=info&expand=progress"
    parts = {"server": "/", "groups": "/groups", "workers": "/workers", "connectors": expanded}
    told = api.client.get("/status").json()
    assert told.pop("health") == api.client.get("/health").json()
    assert (told.pop("folder"), told.pop("nodes")) == (None, None)
    assert told.pop("verdict")["message"] == api.client.get("/health").json()["message"]
    assert told == {part: api.client.get(path).json() for part, path in parts.items()}
    assert [*told["connectors"]["a"]] == ["status", "info", "progress"]


def test_a_group_is_told_as_its_log_has_it(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json=LOCKED)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    told = api.client.get("/groups/connect").json()
    end = told.pop("log_end")
    now_ms = 1_700_000_000_000
    bump = {"cause": "tasks-changed", "subject": "a", "time_ms": now_ms, "actor": None}
    assert end > 0
    assert told == {
        "group_id": "connect",
        "type": "connect",
        "state": "Stable",
        "group_epoch": 2,
        "assignment_epoch": 2,
        "last_rebalance": bump,
        "members": [
            {
                "member_id": "W1",
                "worker_id": W1,
                "instance_id": None,
                "rack": None,
                "tags": [],
                "capacity": 1,
                "state": "STABLE",
                "member_epoch": 2,
                "assigned": [{**A, "grant_epoch": 1}, {**A0, "grant_epoch": 2}],
                "pending_revocation": [],
                "target": [A, A0],
                "assignors": ["balanced"],
                "rebalance_timeout_ms": 60_000,
                "protocol": "connect",
            }
        ],
        "target": {
            "assignment_epoch": 2,
            "assignor": "balanced",
            "computed_by": "W1",
            "time_ms": now_ms,
            "members": {"W1": [A, A0]},
            "unplaceable": [],
            "error": "",
            "failures": 0,
            "retry_at_ms": 0,
        },
        "configured": [A, A0],
        "unassigned": [],
        "awaited": [],
        "parked": [],
        "next_moves_at_ms": None,
        "losses": [],
        "config": {},
        "worker_orders": [],
        "placements": [],
        "unknown_records": 0,
    }
    assert api.client.get("/groups").json() == [
        {
            "group_id": "connect",
            "type": "connect",
            "state": "Stable",
            "group_epoch": 2,
            "assignment_epoch": 2,
            "members": 1,
            "connectors": 1,
            "configured": 2,
            "assigned": 2,
            "assignor_error": "",
            "assignor": "balanced",
        }
    ]


def test_a_group_that_is_not_there_is_a_404(client: Client) -> None:
    for group in ("other", "..%2Fother", "x" * 300):
        assert client.get(f"/groups/{group}").status_code == 404


def test_records_of_a_later_version_are_counted(api: RestApi) -> None:
    api.client.get("/groups/connect")
    api.group.ask("append", NewEntry(99, 1, b"k", b"\xc0"))
    assert api.client.get("/groups/connect").json()["unknown_records"] == 1


def test_a_record_that_only_a_later_version_reads_is_told_as_such(api: RestApi) -> None:
    record = encode(GroupMetadata(1, Cause(Why.OPERATOR), 0))
    api.group.ask("append", replace_version(record))
    reply = api.client.get("/connectors")
    assert reply.json()["error_code"] == 503
    assert "run the version that wrote it" in reply.json()["message"]


def replace_version(entry: NewEntry) -> NewEntry:
    return entry._replace(version=entry.version + 1)


def test_a_worker_is_a_member_and_a_process(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    api.group.ask("seat", "elsewhere")
    w2 = "127.0.0.1:8083/w2"
    api.gateway.workers = (
        ProcessView("w1", 11, W1, "running", 2),
        ProcessView("w2", None, w2, "backing-off", 3, "it ended at once"),
    )
    told = api.client.get("/workers").json()
    members = {
        each["member_id"]: each for each in api.client.get("/groups/connect").json()["members"]
    }
    assert told == {
        "processes_known": True,
        "workers": [
            {
                "name": "elsewhere",
                "worker_id": "127.0.0.1:8083/elsewhere",
                "group_id": "connect",
                "member": members["ELSEWHERE"],
                "order": None,
                "process": None,
            },
            {
                "name": "w1",
                "worker_id": W1,
                "group_id": "connect",
                "member": members["W1"],
                "order": None,
                "process": {"pid": 11, "state": "running", "restarts": 2, "detail": ""},
            },
            {
                "name": "w2",
                "worker_id": w2,
                "group_id": None,
                "member": None,
                "order": None,
                "process": {
                    "pid": None,
                    "state": "backing-off",
                    "restarts": 3,
                    "detail": "it ended at once",
                },
            },
        ],
    }


def test_a_member_whose_process_ended_is_told_apart_from_the_worker_that_took_its_place(
    api: RestApi,
) -> None:
    api.group.ask("seat", "w1")
    api.group.ask("join_beside", "W1-AGAIN", "w1")
    api.gateway.workers = (ProcessView("w1", 12, W1, "running", 1, "", "W1-AGAIN"),)
    told = api.client.get("/workers").json()["workers"]
    assert {each["member"]["member_id"]: each["process"]["state"] for each in told} == {
        "W1": "ended",
        "W1-AGAIN": "running",
    }


def test_members_are_told_without_a_supervisor(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    api.gateway.group = None
    told = api.client.get("/workers").json()
    assert (told["processes_known"], [each["name"] for each in told["workers"]]) == (False, ["w1"])


def test_health_says_whether_commands_are_taken(api: RestApi) -> None:
    healthy = api.client.get("/health")
    assert (healthy.status_code, healthy.json()["status"]) == (200, "healthy")
    api.gateway.group = None
    unwell = api.client.get("/health")
    assert unwell.status_code == 503
    assert unwell.json() == {
        "status": "unhealthy",
        "error_code": 503,
        "message": "group connect is not served yet, or being restarted",
    }
    api.gateway.why = "its logs are damaged"
    told = "group connect is not served yet, or being restarted: its logs are damaged"
    assert api.client.get("/health").json() == {**unwell.json(), "message": told}


def test_health_and_groups_warn_of_a_group_that_has_counted_far(api: RestApi) -> None:
    far = GroupMetadata(MANY_EPOCHS, Cause(Why.MEMBER_JOINED, "w1"), 0)
    api.group.ask("append", encode(far))
    warning = epoch_warning(MANY_EPOCHS)
    health = api.client.get("/health").json()
    assert health == {
        "status": "healthy",
        "message": f"Worker has completed startup and is ready to handle requests. {warning}",
    }
    (told,) = api.client.get("/groups").json()
    assert told["warning"] == api.client.get("/groups/connect").json()["warning"] == warning


@pytest.mark.parametrize(("kind", "code"), [("group", 503), ("supervisor", 503), ("actor", 200)])
def test_who_does_not_answer_is_told_before_it_is_replaced(
    kind: str, code: int, api: RestApi
) -> None:
    run_folder = api.data_dir / "run"
    run_folder.mkdir()
    write_slow(run_folder, [SlowProcess(kind, "x", 12, time.monotonic() - 7.2, 30.0)])
    health = api.client.get("/health")
    assert (health.status_code, health.json()["status"]) == (code, "slow")
    assert health.json()["message"] == (
        f"{kind} x (pid 12) has not answered for 7 s; after 30 s it is killed and restarted"
    )
    write_slow(run_folder, [])
    assert api.client.get("/health").json()["status"] == "healthy"


def test_the_jvm_that_workers_share_is_told_and_ends_with_its_owner(api: RestApi) -> None:
    run_folder = api.data_dir / "run"
    run_folder.mkdir()
    for owner, told in (
        (
            process_of(os.getpid()),
            {"pid": 12, "state": "starting", "restarts": 3, "detail": "waiting for the JVM"},
        ),
        (
            ProcessId(os.getpid(), "another life"),
            {
                "pid": None,
                "state": "backing-off",
                "restarts": 3,
                "detail": "the process that owns the workers' JVM has ended, and the JVM with it",
            },
        ),
    ):
        write_engine(
            engine_file(run_folder), EngineFile(owner, 12, "starting", 3, "waiting for the JVM")
        )
        assert api.client.get("/workers").json()["engine"] == told
    (run_folder / "engine.json").write_text("{}")
    assert "engine" not in api.client.get("/workers").json()


def test_the_root_is_that_of_connect(client: Client) -> None:
    root = {
        "version": "4.3.0",
        "commit": "unknown",
        "kafka_cluster_id": "a-cluster",
        "fairlead_version": "1.2.3",
    }
    assert client.get("/").json() == root


def test_a_group_is_read_as_soon_as_it_has_a_log(
    tmp_path: Path, group_process: GroupProcess
) -> None:
    client = Client(make_app(service := service_over(tmp_path, FakeGateway(None))))
    assert client.get("/groups").json() == []
    assert client.get("/connectors").json()["error_code"] == 503
    with group_process.serving(tmp_path / "groups" / "connect"):
        assert client.get("/connectors").json() == []
        service.logs.close()


def test_reads_see_what_was_written_since(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    before = api.client.get("/groups").json()[0]["members"]
    api.group.ask("seat", "w2")
    assert (before, api.client.get("/groups").json()[0]["members"]) == (1, 2)


def test_many_read_at_once_while_the_group_goes_on(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json=LOCKED)
    api.group.ask("seat", "w1")
    paths = ["/groups/connect", "/connectors?expand=status", "/metrics", "/workers"] * 10
    for number in range(5):
        api.group.ask("split", "a", {"n": str(number)})
        replies = api.client.get_all(paths)
        assert [each.status_code for each in replies] == [200] * len(paths)


def test_a_seat_that_is_away_is_told_with_the_process_that_is_about_to_return(api: RestApi) -> None:
    static = replace(JOIN, url=W1, instance_id="i")
    api.group.ask("join", "W1", static)
    api.group.ask("settle")
    api.group.ask("heartbeat", Heartbeat("connect", "W1", -2, "1", instance_id="i"))
    api.gateway.workers = (ProcessView("w1", 7, W1, "running", 0, "", "W9"),)
    (told,) = api.client.get("/workers").json()["workers"]
    assert (told["member"]["state"], told["process"]["state"]) == ("AWAY", "running")
