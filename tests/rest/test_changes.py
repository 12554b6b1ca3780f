"""One loop follows the logs of all groups, and each subscriber hears of each change once."""

from contextlib import AbstractContextManager

import pytest
from rest.conftest import RestApi

from fairlead.events.log.errors import CorruptLogError
from fairlead.runtime.interfaces.rest.reading.changes import LogChanges
from fairlead.runtime.interfaces.rest.reading.logs import FollowedGroup

CONFIG = {"connector.class": "Locked"}


def test_each_subscriber_hears_of_each_change_once(api: RestApi) -> None:
    heard: list[tuple[str, str, list[str]]] = []
    changes = LogChanges(api.service.logs)
    for who in ("one", "two"):

        def hear(group_id: str, logs: FollowedGroup, who: str = who) -> None:
            heard.append((who, group_id, sorted(logs.group.connectors)))

        changes.subscribe(hear)
    api.client.put("/connectors/a/config", json=CONFIG)
    changes.look()
    changes.look()
    api.client.put("/connectors/b/config", json=CONFIG)
    changes.look()
    assert heard == [
        ("one", "connect", ["a"]),
        ("two", "connect", ["a"]),
        ("one", "connect", ["a", "b"]),
        ("two", "connect", ["a", "b"]),
    ]


def test_a_subscriber_hears_of_logs_that_were_opened_anew(api: RestApi) -> None:
    opened: list[FollowedGroup] = []
    changes = LogChanges(api.service.logs)
    changes.subscribe(lambda _, logs: opened.append(logs))
    api.client.put("/connectors/a/config", json=CONFIG)
    changes.look()
    api.service.logs.close()
    changes.look()
    assert len({id(each) for each in opened}) == len(opened) == 2


def test_a_log_that_cannot_be_read_is_said_and_holds_up_no_other_group(
    api: RestApi, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.client.put("/connectors/a/config", json=CONFIG)
    heard: list[str] = []
    changes = LogChanges(api.service.logs)
    changes.subscribe(lambda group_id, _: heard.append(group_id))
    apart = api.service.logs.apart

    def fail_for_others(group_id: str) -> AbstractContextManager[FollowedGroup]:
        if group_id == "broken":
            raise CorruptLogError("the log is damaged")
        if group_id == "buggy":
            raise KeyError("a mistake")
        return apart(group_id)

    monkeypatch.setattr(api.service.logs, "group_ids", lambda: ["broken", "buggy", "connect"])
    monkeypatch.setattr(api.service.logs, "apart", fail_for_others)
    changes.look()
    assert heard == ["connect"]
    assert [each for each in caplog.messages if "for now" in each] == [
        "what happens in group broken is not told for now: the log is damaged; it is tried again",
        "what happens in group buggy is not told for now; it is tried again",
    ]
