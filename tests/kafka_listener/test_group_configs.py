"""Configs of groups are answered here, those of everything else by the broker behind."""
# pyright: basic

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.local_workers import GROUP as OWN
from fairlead_tests.kafka_listener.served import Client, Served, listening
from fairlead_tests.kafka_listener.spoken import ask, between

DESCRIBE, ALTER, INCREMENTAL, LIST = 32, 33, 44, 74
TOPIC, GROUP = 2, 32
SET, DELETE, APPEND = 0, 1, 2
SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


async def alter(client: Client, *groups: tuple[str, list[tuple[str, int, Any]]], **how: Any) -> Any:
    """Send an IncrementalAlterConfigs for groups; return the error and message of each."""
    resources = [
        {
            "ResourceType": GROUP,
            "ResourceName": name,
            "Configs": [
                {"Name": key, "ConfigOperation": operation, "Value": value}
                for key, operation, value in configs
            ],
        }
        for name, configs in groups
    ]
    said = await ask(client, INCREMENTAL, 1, Resources=resources, **{"ValidateOnly": False, **how})
    return [(each["ErrorCode"], each["ErrorMessage"]) for each in said["Responses"]]


async def own_settings(client: Client, group: str) -> dict[str, str]:
    """Return the settings that a group has of its own."""
    resources = [{"ResourceType": GROUP, "ResourceName": group, "ConfigurationKeys": None}]
    said = await ask(
        client,
        DESCRIBE,
        4,
        Resources=resources,
        IncludeSynonyms=False,
        IncludeDocumentation=False,
    )
    (result,) = said["Results"]
    assert (result["ErrorCode"], result["ResourceType"], result["ResourceName"]) == (
        0,
        GROUP,
        group,
    )
    dynamic = 8
    return {
        each["Name"]: each["Value"] for each in result["Configs"] if each["ConfigSource"] == dynamic
    }


def test_settings_of_a_group_are_changed_here_whether_the_group_is_there_or_not(
    tmp_path: Path,
) -> None:
    async def play(served: Served, broker: Behind) -> None:
        client = await served.dial()
        wanted = [(SESSION, SET, "60000"), (INTERVAL, SET, "6000")]
        assert await alter(client, ("billing", wanted)) == [(0, None)]
        assert await own_settings(client, "billing") == {SESSION: "60000", INTERVAL: "6000"}
        changed = [(SESSION, SET, "50000"), (INTERVAL, DELETE, None)]
        assert await alter(client, ("billing", changed), ValidateOnly=True) == [(0, None)]
        assert await own_settings(client, "billing") == {SESSION: "60000", INTERVAL: "6000"}
        assert await alter(client, ("billing", changed)) == [(0, None)]
        assert await own_settings(client, "billing") == {SESSION: "50000"}
        assert broker.seen == []
        assert (await ask(client, 16, 4, StatesFilter=[]))["Groups"] == []

    between(tmp_path, play)


def test_who_changed_which_settings_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await alter(client, ("billing", [(SESSION, SET, "1")]))
        await alter(client, ("billing", [(SESSION, SET, "60000")]), ValidateOnly=True)
        await alter(client, ("billing", [(SESSION, SET, "60000"), (INTERVAL, DELETE, None)]))

    caplog.set_level("INFO", "fairlead.runtime.kafka")
    between(tmp_path, play)
    logged = [each.getMessage() for each in caplog.records if "settings" in each.getMessage()]
    assert logged == [
        f"settings of group 'billing' were changed by 'User:ANONYMOUS': '{INTERVAL}, {SESSION}'"
    ]


def test_settings_of_the_nodes_own_group_are_changed_by_its_own_names(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        said = await alter(client, (OWN, [("session.timeout.ms", SET, "20000")]))
        assert said == [(0, None)]
        assert served.workers.group.configs == {"session.timeout.ms": "20000"}
        assert await own_settings(client, OWN) == {"session.timeout.ms": "20000"}
        ((error, message),) = await alter(client, (OWN, [(SESSION, SET, "60000")]))
        assert (error, message) == (
            40,
            "unknown setting 'consumer.session.timeout.ms': did you mean session.timeout.ms?;"
            " nothing was changed",
        )

    between(tmp_path, play)


def test_an_alteration_that_is_not_allowed_says_why_and_changes_nothing(tmp_path: Path) -> None:
    allowed = "allowed is a whole number of milliseconds, from 45000 to 60000"
    cases = (
        ("g", [(SESSION, SET, "44999")], 40, f"{SESSION} = '44999': {allowed}"),
        ("g", [(SESSION, SET, "60001")], 40, f"{SESSION} = '60001': {allowed}"),
        ("g", [(SESSION, SET, "soon")], 40, f"{SESSION} = 'soon': {allowed}"),
        ("g", [("consumer.session", SET, "1")], 40, "unknown setting 'consumer.session'"),
        ("g", [(SESSION, APPEND, "1")], 40, f"{SESSION} is no list"),
        ("g", [(SESSION, SET, None)], 42, f"Null value not supported for : {SESSION}"),
        ("g", [(SESSION, SET, "60000")] * 2, 42, "Error due to duplicate config keys"),
        ("", [(SESSION, SET, "60000")], 42, "Default group resources are not allowed."),
        ("a\0b", [(SESSION, SET, "60000")], 24, "the group id 'a\\x00b' holds a NUL"),
    )

    async def play(served: Served, behind: Behind) -> None:
        del behind
        client = await served.dial()
        good = ("good", [(SESSION, SET, "60000")])
        said = await alter(client, *((name, configs) for name, configs, *_ in cases), good)
        for (error, message), (*_, code, why) in zip(said, cases, strict=False):
            assert (error, message[: len(why)]) == (code, why)
        assert said[-1] == (0, None)
        assert await own_settings(client, "g") == {}

    between(tmp_path, play)


def test_one_request_for_groups_and_topics_is_answered_by_both(tmp_path: Path) -> None:
    topic = {"ResourceType": TOPIC, "ResourceName": "t"}
    group = {"ResourceType": GROUP, "ResourceName": "billing"}
    config = {"Name": SESSION, "Value": "60000"}
    done = {"ErrorCode": 0, "ErrorMessage": None}

    async def play(served: Served, broker: Behind) -> None:
        broker.says(ALTER, 2, {"ThrottleTimeMs": 0, "Responses": [{**done, **topic}]})
        client = await served.dial()
        asked = [{**topic, "Configs": []}, {**group, "Configs": [config]}]
        said = await ask(client, ALTER, 2, Resources=asked, ValidateOnly=False)
        assert said["Responses"] == [{**done, **topic}, {**done, **group}]
        (seen,) = broker.seen
        assert b"billing" not in seen
        other = {**config, "Name": "consumer.assignment.interval.ms", "Value": "7000"}
        asked = [{**group, "Configs": [other]}]
        await ask(client, ALTER, 2, Resources=asked, ValidateOnly=False)
        assert await own_settings(client, "billing") == {other["Name"]: "7000"}, "it replaces all"

    between(tmp_path, play)


def test_a_request_that_names_no_group_goes_to_the_broker_as_it_is(tmp_path: Path) -> None:
    topic = {"ResourceType": TOPIC, "ResourceName": "t"}
    result = {"ErrorCode": 0, "ErrorMessage": None, **topic, "Configs": []}

    async def play(served: Served, broker: Behind) -> None:
        broker.says(DESCRIBE, 4, {"ThrottleTimeMs": 0, "Results": [result]})
        client = await served.dial()
        asked = [{**topic, "ConfigurationKeys": None}]
        how = {"IncludeSynonyms": True, "IncludeDocumentation": False}
        said = await ask(client, DESCRIBE, 4, Resources=asked, **how)
        assert said["Results"] == [result]
        assert len(broker.seen) == 1

    between(tmp_path, play)


def test_groups_with_settings_are_listed_in_place_of_those_of_the_broker(tmp_path: Path) -> None:
    theirs = [
        {"ResourceName": "t", "ResourceType": TOPIC},
        {"ResourceName": "at the broker", "ResourceType": GROUP},
    ]

    async def play(served: Served, broker: Behind) -> None:
        answer = {"ThrottleTimeMs": 0, "ErrorCode": 0, "ConfigResources": theirs}
        broker.says(LIST, 1, answer)
        client = await served.dial()
        await alter(client, ("billing", [(SESSION, SET, "60000")]))
        said = await ask(client, LIST, 1, ResourceTypes=[])
        ours = {"ResourceName": "billing", "ResourceType": GROUP}
        assert said["ConfigResources"] == [theirs[0], ours]
        said = await ask(client, LIST, 1, ResourceTypes=[TOPIC])
        assert said["ConfigResources"] == theirs, "the broker lists what it was asked for"

    between(tmp_path, play)


def test_without_a_broker_settings_of_groups_are_told_with_their_defaults(tmp_path: Path) -> None:
    async def play() -> None:
        async with listening(tmp_path) as served:
            client = await served.dial()
            keys = [SESSION, "group.migration.policy"]
            asked = [{"ResourceType": GROUP, "ResourceName": "g", "ConfigurationKeys": keys}]
            how = {"IncludeSynonyms": True, "IncludeDocumentation": True}
            said = await ask(client, DESCRIBE, 4, Resources=asked, **how)
            told = [
                (each["Name"], each["Value"], each["ConfigSource"], each["ConfigType"])
                for each in said["Results"][0]["Configs"]
            ]
            assert told == [
                (SESSION, "6000", 5, 3),
                ("group.migration.policy", "bidirectional", 5, 2),
            ]

    asyncio.run(play())
