"""Access control lists: Kafka's rules one by one, and the answers to clients without a right."""
# pyright: basic

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.messages.groups import TellTopics
from fairlead.events.records import Topic
from fairlead.runtime.kafka.broker import group_partition
from fairlead.runtime.kafka.security.acls import (
    CLUSTER,
    NO_RULES,
    AclClient,
    AclOperation,
    Authorizer,
    ResourceKind,
    parse_acls,
)
from fairlead.runtime.kafka.wire.connect_messages import ConnectGroupPrepareAssignmentRequest
from fairlead.runtime.kafka.wire.frames import Head, Request, read_response, write_request
from fairlead.runtime.kafka.wire.served import (
    CONNECT_PREPARE,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SERVED,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from fairlead_tests.kafka_listener.behind import LIST_OFFSETS, Behind
from fairlead_tests.kafka_listener.sasl import (
    PASSWORDS,
    authenticate,
    guarded,
    plain,
    shake,
)
from fairlead_tests.kafka_listener.served import Client, Served
from fairlead_tests.kafka_listener.spoken import ask, asking

NO_TOPIC, NO_GROUP, NO_TRANSACTIONAL_ID, UNKNOWN_MEMBER, LOADING = 29, 30, 53, 25, 14
GROUP, TOPIC = ResourceKind.GROUP, ResourceKind.TOPIC
ANN = AclClient("User:ann", "10.0.0.1")
CREATE_TOPICS = 19


@pytest.mark.parametrize(
    ("rules", "operation", "name", "is_allowed"),
    [
        ("", "read", "g", False),
        ("allow User:ann read group literal g", "read", "g", True),
        ("allow User:ann read group literal g", "describe", "g", True),
        ("allow User:ann delete group literal g", "describe", "g", True),
        ("allow User:ann describe group literal g", "read", "g", False),
        ("allow User:ann read group literal g", "delete", "g", False),
        ("allow User:ann all group literal g", "delete", "g", True),
        ("allow User:ann read,delete group literal g", "delete", "g", True),
        ("allow User:ann read topic literal g", "read", "g", False),
        ("allow User:bob read group literal g", "read", "g", False),
        ("allow User:* read group literal g", "read", "g", True),
        ("allow User:ann read group literal g", "read", "g2", False),
        ("allow User:ann read group literal *", "read", "g2", True),
        ("allow User:ann read group prefixed g", "read", "g2", True),
        ("allow User:ann read group prefixed g2", "read", "g", False),
        ("allow User:ann read group literal g 10.0.0.1", "read", "g", True),
        ("allow User:ann read group literal g 10.0.0.2", "read", "g", False),
        (
            "allow User:* all group literal *\ndeny User:ann read group literal g",
            "read",
            "g",
            False,
        ),
        ("allow User:* all group literal *\ndeny User:ann read group literal g", "read", "h", True),
        (
            "allow User:ann all group literal g\ndeny User:* all group prefixed g",
            "read",
            "g",
            False,
        ),
        (
            "deny User:ann read group literal g\nallow User:ann read group literal g",
            "describe",
            "g",
            True,
        ),
        (
            "deny User:ann describe group literal g\nallow User:ann read group literal g",
            "read",
            "g",
            True,
        ),
        ('allow "User:ann" read group literal "a b" # so', "read", "a b", True),
    ],
)
def test_a_rule_means_what_it_means_to_kafka(
    rules: str, operation: str, name: str, is_allowed: bool
) -> None:
    authorizer = Authorizer(parse_acls(rules), frozenset(), allows_without_rules=False)
    assert authorizer.allows(ANN, AclOperation(operation), GROUP, name) is is_allowed


def test_super_users_may_do_everything_and_others_what_no_rule_is_about() -> None:
    rules = parse_acls("deny User:* all group literal g")
    authorizer = Authorizer(rules, frozenset({"User:root"}), allows_without_rules=True)
    root = AclClient("User:root", "::1")
    assert authorizer.allows(root, AclOperation.READ, GROUP, "g")
    assert authorizer.allows(ANN, AclOperation.READ, GROUP, "h")
    assert not authorizer.allows(ANN, AclOperation.READ, GROUP, "g")
    authorizer.rules = NO_RULES
    assert authorizer.allows(ANN, AclOperation.READ, GROUP, "g")


@pytest.mark.parametrize(
    ("line", "flaw"),
    [
        ("allow User:ann read group g", "a rule is: allow|deny PRINCIPAL"),
        ("permit User:ann read group literal g", "'permit' is none of allow, deny"),
        ("allow ann read group literal g", "'ann' is no principal"),
        ("allow User: read group literal g", "'User:' is no principal"),
        ("allow User:ann reed group literal g", "'reed' is none of read"),
        ("allow User:ann read groups literal g", "'groups' is none of group, topic, cluster"),
        ("allow User:ann read group exact g", "'exact' is none of literal, prefixed"),
        ("allow User:ann read group literal ''", "is no name of a group"),
        ("allow User:ann describe cluster literal x", f"that of the cluster is {CLUSTER}"),
        ("allow User:ann read group literal 'g", "No closing quotation"),
    ],
)
def test_a_line_that_is_no_rule_is_refused_with_its_number(line: str, flaw: str) -> None:
    with pytest.raises(ValueError, match="line 2: ") as refused:
        parse_acls(f"\n{line}\n")
    assert flaw in str(refused.value)


RULES = """
allow User:ann read group prefixed a-
allow User:ann delete group literal a-1
allow User:ann read topic literal mine
allow User:ann describe topic literal seen
"""
PARTITION = {"PartitionIndex": 0, "CommittedOffset": 5, "CommittedLeaderEpoch": -1}
JOIN = {
    "SessionTimeoutMs": 10_000,
    "RebalanceTimeoutMs": 10_000,
    "MemberId": "",
    "ProtocolType": "x",
    "Protocols": [{"Name": "p", "Metadata": "hex:00"}],
}
MODERN = {
    "MemberId": "m",
    "MemberEpoch": 0,
    "InstanceId": None,
    "RackId": None,
    "RebalanceTimeoutMs": 10_000,
    "ServerAssignor": None,
    "TopicPartitions": [],
}


def commit(group_id: str, *topics: str) -> dict[str, Any]:
    """Return a commit of one partition of each topic."""
    named = [
        {"Name": each, "Partitions": [{**PARTITION, "CommittedMetadata": ""}]} for each in topics
    ]
    own = {"GenerationIdOrMemberEpoch": -1, "MemberId": "", "GroupInstanceId": None}
    return {"GroupId": group_id, **own, "Topics": named}


IN_TRANSACTION = {
    "TransactionalId": "copy",
    "ProducerId": 7,
    "ProducerEpoch": 0,
    "GenerationId": -1,
}


def restricted(folder: Path, play: Any, rules: str = RULES, **security: Any) -> None:
    """Play with one client, ann, as these rules restrict it."""
    (folder / "acls").write_text(rules)

    async def begin(served: Served, broker: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        await authenticate(client, plain("ann", PASSWORDS["ann"]))
        await play(client, served, broker)

    guarded(folder, begin, acls=str(folder / "acls"), **security)


def errors_of(answer: Any) -> list[int]:
    """Return all errors in an answer."""
    if isinstance(answer, list):
        return [error for each in answer for error in errors_of(each)]
    if not isinstance(answer, dict):
        return []
    inner = [error for each in answer.values() for error in errors_of(each)]
    return [answer["ErrorCode"], *inner] if "ErrorCode" in answer else inner


ASKED: dict[int, tuple[int, dict[str, Any]]] = {
    JOIN_GROUP: (5, {"GroupId": "b", **JOIN}),
    SYNC_GROUP: (3, {"GroupId": "b", "GenerationId": 1, "MemberId": "m", "Assignments": []}),
    HEARTBEAT: (4, {"GroupId": "b", "GenerationId": 1, "MemberId": "m"}),
    LEAVE_GROUP: (2, {"GroupId": "b", "MemberId": "m"}),
    OFFSET_COMMIT: (8, commit("b", "mine")),
    TXN_OFFSET_COMMIT: (3, {**commit("b", "mine"), **IN_TRANSACTION}),
    OFFSET_FETCH: (7, {"GroupId": "b", "Topics": None, "RequireStable": False}),
    OFFSET_DELETE: (0, {"GroupId": "a-2", "Topics": []}),
    FIND_COORDINATOR: (3, {"Key": "b", "KeyType": 0}),
    DESCRIBE_GROUPS: (5, {"Groups": ["b"], "IncludeAuthorizedOperations": False}),
    DELETE_GROUPS: (2, {"GroupsNames": ["a-2"]}),
    CONSUMER_GROUP_HEARTBEAT: (0, {"GroupId": "b", **MODERN, "SubscribedTopicNames": ["mine"]}),
    CONSUMER_GROUP_DESCRIBE: (0, {"GroupIds": ["b"], "IncludeAuthorizedOperations": False}),
}


def test_every_call_without_a_right_for_its_group_is_refused_with_error_30(
    tmp_path: Path,
) -> None:
    async def play(client: Client, served: Served, _: Behind) -> None:
        calls = served.shard.calls
        for api, (version, fields) in ASKED.items():
            answer = await ask(client, api, version, **fields)
            assert set(errors_of(answer)) - {0} == {NO_GROUP}, (api, answer)
        assert served.shard.calls == calls
        assert served.counts.told[0] == "no right: 'User:ann' may not read group 'b'"

    restricted(tmp_path, play)
    others = {LIST_GROUPS, *(key for key in SERVED if key >= CONNECT_PREPARE - 1)}
    assert SERVED.keys() - ASKED.keys() == others


def test_the_calls_of_the_workers_group_need_the_right_to_read_it(tmp_path: Path) -> None:
    async def play(client: Client, served: Served, _: Behind) -> None:
        message = ConnectGroupPrepareAssignmentRequest(
            group_id="connect", member_id="m", member_epoch=1
        )
        head = Head(CONNECT_PREPARE, 0, 7)
        frame = await client.asks(write_request(Request(head, "c", message)))
        assert read_response(head, frame).error_code == NO_GROUP
        assert served.counts.told == ["no right: 'User:ann' may not read group 'connect'"]

    restricted(tmp_path, play)


def test_a_commit_in_a_transaction_needs_the_right_to_write_with_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_partition, "ANSWER_SECONDS", 0.1)

    async def play(client: Client, served: Served, _: Behind) -> None:
        fields = {**commit("a-1", "mine"), **IN_TRANSACTION}
        answer = await ask(client, TXN_OFFSET_COMMIT, 3, **fields)
        assert errors_of(answer) == [NO_TRANSACTIONAL_ID]
        assert served.counts.told == ["no right: 'User:ann' may not write transactional id 'copy'"]
        fields["TransactionalId"] = "anns"
        answer = await ask(client, TXN_OFFSET_COMMIT, 3, **fields)
        assert errors_of(answer) == [LOADING]  # no broker tells whether it is open

    rules = f"{RULES}allow User:ann write transactional-id prefixed ann\n"
    restricted(tmp_path, play, rules)


def test_a_commit_is_for_the_topics_that_the_client_may_read(tmp_path: Path) -> None:
    async def play(client: Client, _: Served, __: Behind) -> None:
        topics = (await ask(client, OFFSET_COMMIT, 8, **commit("a-1", "mine", "seen", "hidden")))[
            "Topics"
        ]
        errors = {each["Name"]: each["Partitions"][0]["ErrorCode"] for each in topics}
        assert errors == {"mine": 0, "seen": NO_TOPIC, "hidden": NO_TOPIC}
        topics = (await ask(client, OFFSET_COMMIT, 8, **commit("a-1", "hidden")))["Topics"]
        assert errors_of(topics) == [NO_TOPIC]

    restricted(tmp_path, play)


@pytest.mark.parametrize("version", [1, 7, 9])
def test_offsets_of_topics_that_the_client_may_not_describe_are_not_told(
    tmp_path: Path, version: int
) -> None:
    async def play(client: Client, _: Served, __: Behind) -> None:
        topics = [{"Name": each, "PartitionIndexes": [0, 1]} for each in ("hidden", "mine", "seen")]
        group = {"MemberId": None, "MemberEpoch": -1, "GroupId": "a-1", "Topics": topics}
        asked: dict[str, Any] = {"RequireStable": False}
        asked |= {"Groups": [{**group, "groupId": "a-1"}]} if version > 7 else group
        answer = await ask(client, OFFSET_FETCH, version, **asked)
        (answer,) = answer.get("Groups", [answer])
        errors = {
            each["Name"]: [one["ErrorCode"] for one in each["Partitions"]]
            for each in answer["Topics"]
        }
        assert errors == {"mine": [0, 0], "seen": [0, 0], "hidden": [NO_TOPIC, NO_TOPIC]}

    restricted(tmp_path, play)


def test_offsets_are_deleted_of_topics_that_the_client_may_read(tmp_path: Path) -> None:
    async def play(client: Client, _: Served, __: Behind) -> None:
        partitions = [{"PartitionIndex": 0}]
        topics = [{"Name": each, "Partitions": partitions} for each in ("hidden", "seen")]
        answer = await ask(client, OFFSET_DELETE, 0, GroupId="a-1", Topics=topics)
        assert errors_of(answer) == [0, NO_TOPIC, NO_TOPIC]

    restricted(tmp_path, play)


def test_a_consumer_subscribes_to_topics_that_it_may_describe(tmp_path: Path) -> None:
    async def play(client: Client, _: Served, __: Behind) -> None:
        for topics, error in ((["mine", "seen"], 0), (["mine", "hidden"], NO_TOPIC)):
            fields = {"GroupId": "a-1", **MODERN, "SubscribedTopicNames": topics}
            answer = await ask(client, CONSUMER_GROUP_HEARTBEAT, 0, **fields)
            assert answer["ErrorCode"] == error, answer

    restricted(tmp_path, play)


TOPICS = {each: Topic(each.encode().hex().zfill(32), 1) for each in ("mine", "seen", "hidden")}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("rules", [RULES, f"{RULES}deny User:* all topic prefixed mi\n", ""])
def test_a_pattern_stands_for_the_topics_that_the_client_may_describe(
    rules: str, is_open: bool
) -> None:
    authorizer = Authorizer(parse_acls(rules), frozenset(), allows_without_rules=is_open)
    allowed = [
        each for each in TOPICS if authorizer.allows(ANN, AclOperation.DESCRIBE, TOPIC, each)
    ]
    assert [*authorizer.describable_topics(ANN).filter(TOPICS)] == allowed


def test_the_topics_of_a_pattern_change_with_the_rights_of_its_client(tmp_path: Path) -> None:
    async def play(client: Client, served: Served, _: Behind) -> None:
        await served.shard.ask(TellTopics(TOPICS))
        join = {**MODERN, "SubscribedTopicNames": None, "SubscribedTopicRegex": ".*"}
        fields: dict[str, Any] = {"GroupId": "a-1", **join}
        answer = await ask(client, CONSUMER_GROUP_HEARTBEAT, 1, **fields)
        assert names_in(answer) == {"mine", "seen"}
        bare = dict.fromkeys(fields) | {"GroupId": "a-1", "MemberId": "m"}
        for rules, names in (
            (f"{RULES}allow User:ann all topic literal *", {*TOPICS}),
            (f"{RULES}deny User:ann describe topic literal mine", {"seen"}),
        ):
            (tmp_path / "acls").write_text(rules)
            assert served.access.refresh()
            served.listener.renew_rights()
            told = set[str]()
            while told != names:
                beat = {**bare, "MemberEpoch": answer["MemberEpoch"], "RebalanceTimeoutMs": -1}
                beat["TopicPartitions"] = (answer["Assignment"] or {}).get("TopicPartitions")
                answer = await ask(client, CONSUMER_GROUP_HEARTBEAT, 1, **beat)
                told = names_in(answer) or told

    restricted(tmp_path, play)


def names_in(answer: Any) -> set[str]:
    """Return the names of the topics in an assignment."""
    assert answer["ErrorCode"] == 0, answer
    ids = {f"hex:{topic.topic_id}": name for name, topic in TOPICS.items()}
    assignment = answer["Assignment"] or {"TopicPartitions": []}
    return {ids[each["TopicId"]] for each in assignment["TopicPartitions"]}


def test_a_list_has_the_groups_that_the_client_may_describe(tmp_path: Path) -> None:
    async def play(client: Client, served: Served, _: Behind) -> None:
        for group_id in ("a-1", "a-2"):
            await ask(client, JOIN_GROUP, 3, GroupId=group_id, **JOIN)
        groups = (await ask(client, LIST_GROUPS, 0))["Groups"]
        assert [each["GroupId"] for each in groups] == ["a-1", "a-2"]
        (tmp_path / "acls").write_text("allow User:ann describe group literal a-2")
        served.access.refresh()
        groups = (await ask(client, LIST_GROUPS, 0))["Groups"]
        assert [each["GroupId"] for each in groups] == ["a-2"]
        (tmp_path / "acls").write_text(f"allow User:ann describe cluster literal {CLUSTER}")
        served.access.refresh()
        groups = (await ask(client, LIST_GROUPS, 0))["Groups"]
        assert [each["GroupId"] for each in groups] == ["a-1", "a-2"]

    restricted(tmp_path, play)


def test_a_right_that_is_taken_away_ends_the_heartbeats_of_an_open_connection(
    tmp_path: Path,
) -> None:
    async def play(client: Client, served: Served, _: Behind) -> None:
        member = (await ask(client, JOIN_GROUP, 3, GroupId="a-1", **JOIN))["MemberId"]
        beat = {"GroupId": "a-1", "GenerationId": 7, "MemberId": member}
        for _turn in range(3):  # the second one takes the fast path
            answered = await ask(client, HEARTBEAT, 3, GroupInstanceId=None, **beat)
            assert answered["ErrorCode"] not in {0, NO_GROUP}
        (tmp_path / "acls").write_text("# nothing")
        assert served.access.refresh()
        served.listener.renew_rights()
        for _turn in range(3):
            answered = await ask(client, HEARTBEAT, 3, GroupInstanceId=None, **beat)
            assert answered["ErrorCode"] == NO_GROUP

    restricted(tmp_path, play)


def test_rules_that_cannot_be_read_leave_those_of_before_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(client: Client, served: Served, _: Behind) -> None:
        (tmp_path / "acls").write_text("allow everybody everything")
        assert not served.access.refresh()
        fields = {"GroupId": "a-1", "GenerationId": 1, "MemberId": "m"}
        assert (await ask(client, HEARTBEAT, 2, **fields))["ErrorCode"] == UNKNOWN_MEMBER

    restricted(tmp_path, play)
    assert "line 1: a rule is: allow|deny" in caplog.text
    assert "what it said before stays in force" in caplog.text


def test_settings_of_a_group_need_a_right_of_their_own(tmp_path: Path) -> None:
    rules = """
allow User:ann alterconfigs group literal mine
allow User:ann read,describe group literal theirs
"""

    async def play(client: Client, served: Served, broker: Behind) -> None:
        key, group = "consumer.session.timeout.ms", {"ResourceType": 32}
        change = {"Configs": [{"Name": key, "ConfigOperation": 0, "Value": "60000"}]}
        named = [{**group, "ResourceName": each} for each in ("mine", "theirs")]
        answer = await ask(
            client, 44, 1, Resources=[{**each, **change} for each in named], ValidateOnly=False
        )
        assert [each["ErrorCode"] for each in answer["Responses"]] == [0, NO_GROUP]
        described = [{**each, "ConfigurationKeys": [key]} for each in named]
        how = {"IncludeSynonyms": False, "IncludeDocumentation": False}
        answer = await ask(client, 32, 4, Resources=described, **how)
        assert [each["ErrorCode"] for each in answer["Results"]] == [0, NO_GROUP]
        assert [each["Value"] for each in answer["Results"][0]["Configs"]] == ["60000"]
        topic = {"ResourceType": 2, "ResourceName": "t", "ConfigurationKeys": None}
        assert await client.asks(asking(32, 4, {"Resources": [*described, topic], **how})) == b""
        assert (served.counts.reasons, broker.seen) == (["not authorized"], [])

    restricted(tmp_path, play, rules)


def test_the_brokers_are_administered_by_clients_that_may_alter_the_cluster(
    tmp_path: Path,
) -> None:
    async def play(client: Client, served: Served, broker: Behind) -> None:
        await client.send(asking(LIST_OFFSETS, 1, {"ReplicaId": -1, "Topics": []}))
        while not broker.seen:
            await asyncio.sleep(0.001)
        thief = await served.dial()
        await shake(thief, "PLAIN")
        await authenticate(thief, plain("ann", PASSWORDS["ann"]))
        fields = {"Topics": [], "timeoutMs": 1, "validateOnly": False}
        assert await thief.asks(asking(CREATE_TOPICS, 2, fields)) == b""
        assert served.counts.reasons == ["not authorized"]
        assert len(broker.seen) == 1

    restricted(tmp_path, play)
