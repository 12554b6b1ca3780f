"""`/groups/{g}/events`: what happened in a group, again and again from the same place."""

from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.runtime.interfaces.rest.routes.groups import events

NOW_MS = 1_700_000_000_000


def live(api: RestApi) -> None:
    """W1 joins and is given connector a, which splits into one task that fails."""
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})


def events_of(api: RestApi, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = api.client.get(f"/groups/connect/events{query}").json()
    return found


def test_events_are_what_happened_in_order_and_come_again_with_the_later_ones(
    api: RestApi,
) -> None:
    live(api)
    before = events_of(api)
    texts = [each["text"] for each in before["events"]]
    assert texts[0] == "connector a was created by rest 127.0.0.1: Locked"
    assert before["start"] == 0
    api.client.put("/connectors/a/pause")
    after = events_of(api, "?start=0")
    assert after["events"][: len(texts)] == before["events"]
    assert after["next"] > before["next"]
    first, *_ = after["events"][len(texts) :]
    assert first == {
        "time_ms": NOW_MS,
        "type": "Normal",
        "text": "connector a is to be PAUSED by rest 127.0.0.1",
        "connector": "a",
        "task": None,
        "worker": "",
        "epoch": None,
    }
    assert events_of(api, f"?start={after['next']}")["events"] == []


def test_events_are_of_the_last_entries_alone(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(api)
    whole = events_of(api)
    monkeypatch.setattr(events, "ENTRIES_MAX", 2)
    last = events_of(api, "?start=0")
    assert (last["start"], last["next"]) == (whole["next"] - 2, whole["next"])
    assert len(last["events"]) < len(whole["events"])


@pytest.mark.parametrize("query", ["?start=-2", "?start=x"])
def test_a_place_that_is_none_is_refused(query: str, api: RestApi) -> None:
    live(api)
    assert api.client.get(f"/groups/connect/events{query}").status_code == 400
    assert api.client.get("/groups/none/events").status_code == 404


def test_events_of_one_connector_are_those_of_its_tasks_as_well(api: RestApi) -> None:
    live(api)
    api.client.put("/connectors/b/config", json={"connector.class": "Locked"})
    whole = events_of(api)
    own = events_of(api, "?connector=a")
    assert own == {**whole, "events": [e for e in whole["events"] if e["connector"] == "a"]}
    assert {each["task"] for each in own["events"]} >= {None, 0}
    assert events_of(api, "?connector=c") == {**whole, "events": []}
