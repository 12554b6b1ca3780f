"""One loop follows the logs of all groups, and each subscriber hears of each change once."""

from rest.conftest import RestApi

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
