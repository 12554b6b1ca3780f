"""ConnectGroupDescribe tells of connect groups what ConsumerGroupDescribe tells of consumers'."""
# pyright: basic

from pathlib import Path
from typing import Any

import pytest
from kafka_listener.test_connect_calls import A_AND_TASKS, ASSIGNOR, Spoken, speaking, write

from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.served import CONNECT_DESCRIBE
from fairlead_tests.kafka_listener.served import Served
from fairlead_tests.kafka_listener.spoken import ask

A = wire.ConnectorsAndTasks(connectors=("A",))
BOTH = wire.ConnectorsAndTasks(connectors=("A", "B"))
B = wire.ConnectorsAndTasks(connectors=("B",))
ASKED_BYTES = bytes.fromhex("02 05 63726577 00 00")
LIST_GROUPS, CLASSIC_GROUP = 16, "chess"


async def describe(spoken: Spoken, *groups: str) -> tuple[wire.DescribedGroup, ...]:
    message = wire.ConnectGroupDescribeRequest(group_ids=groups)
    answer = await spoken.asks(CONNECT_DESCRIBE, message)
    found: tuple[wire.DescribedGroup, ...] = answer.groups
    return found


def test_the_request_has_the_fields_of_consumer_group_describe() -> None:
    assert write(wire.ConnectGroupDescribeRequest(group_ids=("crew",))) == ASKED_BYTES


def test_members_are_told_with_what_they_may_run_hold_and_are_to_have(tmp_path: Path) -> None:
    async def play(spoken: Spoken, served: Served) -> None:
        served.workers.configure("B")
        await spoken.beats(url="http://m1/", rack_id="z1", instance_id="i1")
        await spoken.prepares(0)
        await spoken.installs(0, 1, m1=BOTH)
        await spoken.beats(0, url="http://m1/", rack_id="z1", instance_id="i1")
        await spoken.beats(member_id="m2")
        told = await spoken.prepares(1)
        install = wire.ConnectGroupInstallAssignmentRequest(
            group_id="connect",
            member_id="m1",
            member_epoch=1,
            group_epoch=told.group_epoch,
            members=(
                wire.InstalledMember(member_id="m1", connectors_and_tasks=A),
                wire.InstalledMember(
                    member_id="m2", connectors_and_tasks=B, version=3, metadata=b"for-m2"
                ),
            ),
        )
        await spoken.asks(10_850, install)
        await spoken.beats(1, connectors_and_tasks=BOTH)
        await spoken.beats(0, member_id="m2")
        first = wire.DescribedMember(
            member_id="m1",
            instance_id="i1",
            rack_id="z1",
            member_epoch=1,
            client_id="c",
            client_host="/127.0.0.1",
            url="http://m1/",
            assignment=A,
            owned=BOTH,
            target_assignment=A,
            member_type=1,
        )
        second = wire.DescribedMember(
            member_id="m2",
            member_epoch=2,
            client_id="c",
            client_host="/127.0.0.1",
            version=3,
            metadata=b"for-m2",
            assignment=wire.NOTHING,
            owned=wire.NOTHING,
            target_assignment=B,
            member_type=1,
        )
        group = wire.DescribedGroup(
            error_code=0,
            group_id="connect",
            group_state="Reconciling",
            group_epoch=2,
            assignment_epoch=2,
            assignor_name="mine",
            members=(first, second),
        )
        assert await describe(spoken, "connect") == (group,)

    speaking(tmp_path, play)


def test_groups_of_any_id_are_told_and_others_are_unknown_as_such(tmp_path: Path) -> None:
    async def play(spoken: Spoken, served: Served) -> None:
        crew: dict[str, Any] = {"client_assignors": None, "server_assignor": "uniform"}
        crew |= {"group_id": "crew", "configured": A_AND_TASKS, "config_offset": 3}
        await spoken.beats(**crew)
        join = {
            "GroupId": CLASSIC_GROUP,
            "SessionTimeoutMs": 6_000,
            "RebalanceTimeoutMs": 6_000,
            "MemberId": "",
            "ProtocolType": "game",
            "Protocols": [{"Name": "chess", "Metadata": "hex:00"}],
        }
        await ask(await served.dial(), 11, 3, **join)
        found, classic, missing = await describe(spoken, "crew", CLASSIC_GROUP, "nowhere")
        (member,) = found.members
        assert (found.error_code, found.group_state, found.assignor_name) == (
            0,
            "Stable",
            "uniform",
        )
        assert (member.assignment, member.owned, member.target_assignment) == (A_AND_TASKS,) * 3
        assert [(each.error_code, each.error_message) for each in (classic, missing)] == [
            (69, f"Group {CLASSIC_GROUP} is not a connect group."),
            (69, "Group nowhere not found."),
        ]

    speaking(tmp_path, play)


@pytest.mark.parametrize("group", ["connect", "crew"])
def test_a_group_without_members_has_its_state_alone(tmp_path: Path, group: str) -> None:
    async def play(spoken: Spoken, _: Served) -> None:
        told: dict[str, Any] = {"group_id": group, "client_assignors": (ASSIGNOR,)}
        await spoken.beats(**told)
        await spoken.beats(-1, group_id=group)
        (found,) = await describe(spoken, group)
        assert (found.group_state, found.members, found.assignor_name) == ("Empty", (), "")

    speaking(tmp_path, play)


def test_tools_do_not_delete_the_workers_group_nor_give_it_offsets(tmp_path: Path) -> None:
    """Connect's users would lose no connector by it, but here these belong to the group."""
    offset = {"PartitionIndex": 0, "CommittedOffset": 5, "CommittedLeaderEpoch": -1}
    partitions = [{**offset, "CommittedMetadata": ""}]
    commit = {
        "GroupId": "connect",
        "GenerationIdOrMemberEpoch": -1,
        "MemberId": "",
        "GroupInstanceId": None,
        "Topics": [{"Name": "t", "Partitions": partitions}],
    }
    delete = {
        "GroupId": "connect",
        "Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0}]}],
    }
    fetch = {"GroupId": "connect", "Topics": [{"Name": "t", "PartitionIndexes": [0]}]}

    async def play(spoken: Spoken, served: Served) -> None:
        client = await served.dial()
        for is_there in (False, True):
            if is_there:
                await spoken.beats(client_assignors=None, server_assignor="uniform")
            removed = await ask(client, 42, 2, GroupsNames=["connect"])
            assert removed["Results"][0]["ErrorCode"] == (68 if is_there else 24)
            committed = await ask(client, 8, 8, **commit)
            (verdict,) = committed["Topics"][0]["Partitions"]
            assert verdict["ErrorCode"] == (25 if is_there else 24)
            deleted = await ask(client, 47, 0, **delete)
            assert deleted["ErrorCode"] == (68 if is_there else 24)
            fetched = await ask(client, 9, 7, **fetch, RequireStable=False)
            (told,) = fetched["Topics"][0]["Partitions"]
            assert (told["CommittedOffset"], told["ErrorCode"], fetched["ErrorCode"]) == (-1, 0, 0)
        assert served.workers.group.connectors.keys() == {"A"}

    speaking(tmp_path, play)
