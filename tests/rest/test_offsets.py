"""Offsets over REST: Connect's shapes and words, what is refused, and seek."""

import asyncio
import json
import os
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.commands import FinishStop
from fairlead.actors.messages.orders import SetTargetState
from fairlead.events.model import Resource, RunState
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server import bodies
from fairlead.runtime.interfaces.rest.validation import offsets
from fairlead_tests.rest.client import Client

PATH = "/connectors/a/offsets"
NOTHING: dict[str, Any] = {"offsets": []}
STOP_IT = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done"
    " for the specified connector by issuing a 'PUT' request to the '/connectors/a/stop' endpoint"
)
ALTERED = {"message": "The offsets for this connector have been altered successfully"}
RESET = {"message": "The offsets for this connector have been reset successfully"}
AT = 1_700_000_000
NO_OFFSETS = [
    ("", ""),
    ("null", ""),
    ("[]", ""),
    ("{", "no valid JSON"),
    ('{"offsets": {}}', "offsets: "),
    ('{"offsets": [null]}', "offsets.0: "),
    ('{"offsets": [{}]}', "offsets[0].partition.path is missing"),
    ('{"offsets": [{"partition": "x"}]}', "offsets.0.partition: must be an object, or null"),
    ('{"offsets": [{"partition": {}, "offset": 5}]}', "offsets.0.offset: must be an object"),
    ('{"offsets": [{"partition": {"path": ["x"]}}]}', "path: must be a text, a number"),
    ('{"offsets": [{"partition": {"path": 1e999}}]}', "path: is no number of 64 bits"),
    ('{"offsets": [{"partition": {"n": 9223372036854775808}}]}', "n: is no number of 64 bits"),
    ('{"offsets": [{"partition": {"path": "\\ud800"}}]}', "holds a lone surrogate"),
    ('{"offsets": [{"partition": {"path": "0.csv", "more": 1}}]}', "partition.more is unknown"),
    ('{"offsets": [{"partition": {"path": "0.csv"}, "x": 1}]}', "offsets.0.x: "),
    ('{"offsets": [], "bogus": 1}', "bogus: "),
]
"""Bodies that are none, and what is said of each."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, an hour between each two."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        file = folder / f"{number}.csv"
        file.write_text("n\n1\n")
        at = AT + number * 3_600
        os.utime(file, (at, at))
    return folder


@pytest.fixture
def stopped(api: RestApi, folder: Path) -> Client:
    """A connector over the folder that never ran, and is stopped."""
    config = {"connector.class": "SparkPipeline", "source.path": str(folder)}
    config |= {
        "source.format": "csv",
        "sink.format": "json",
        "sink.path": str(folder.parent / "out"),
    }
    body = {"name": "a", "config": config, "initial_state": "STOPPED"}
    made = api.client.post("/connectors", json=body)
    assert made.status_code == HTTPStatus.CREATED, made.text
    api.group.ask("carry_out", FinishStop("a"))
    return api.client


def of(folder: Path, number: int, **changed: object) -> dict[str, Any]:
    offset = {"size": 4, "modified_ms": (AT + number * 3_600) * 1_000} | changed
    return {"partition": {"root": str(folder), "path": f"{number}.csv"}, "offset": offset}


def patch(client: Client, *offsets: object) -> tuple[int, Any]:
    answer = client.request("PATCH", PATH, json={"offsets": offsets})
    return answer.status_code, answer.json()


def seek(client: Client, to: object, **more: object) -> tuple[int, Any]:
    answer = client.post(f"{PATH}/seek", json={"to": to, **more})
    return answer.status_code, answer.json()


def listed(client: Client) -> Any:
    return client.get(PATH).json()


def test_offsets_of_a_stopped_connector_are_set_listed_and_reset(
    stopped: Client, folder: Path
) -> None:
    assert listed(stopped) == NOTHING
    assert patch(stopped, of(folder, 1), of(folder, 0)) == (200, ALTERED)
    assert listed(stopped) == {"offsets": [of(folder, 0), of(folder, 1)]}
    assert patch(stopped, {**of(folder, 1), "offset": None}) == (200, ALTERED)
    assert listed(stopped) == {"offsets": [of(folder, 0)]}
    gone = stopped.delete(PATH)
    assert (gone.status_code, gone.json()) == (200, RESET)
    assert listed(stopped) == NOTHING


def test_offsets_of_a_connector_that_is_not_stopped_stay_as_they_are(
    api: RestApi, stopped: Client, folder: Path
) -> None:
    patch(stopped, of(folder, 0))
    for state in (RunState.PAUSED, RunState.RUNNING):
        api.group.ask("carry_out", SetTargetState("connect", "a", state))
        refusals = [patch(stopped, of(folder, 1)), seek(stopped, "earliest")]
        gone = stopped.delete(PATH)
        refusals.append((gone.status_code, gone.json()))
        assert refusals == [(400, {"error_code": 400, "message": STOP_IT})] * 3
    assert listed(stopped) == {"offsets": [of(folder, 0)]}


def test_a_connector_that_is_not_there_has_no_offsets(client: Client, folder: Path) -> None:
    missing = (404, {"error_code": 404, "message": "Connector a not found"})
    for answer in (client.get(PATH), client.delete(PATH)):
        assert (answer.status_code, answer.json()) == missing
    assert patch(client, of(folder, 0)) == missing
    assert seek(client, "latest") == missing


def test_a_request_without_offsets_is_refused_in_the_words_of_connect(stopped: Client) -> None:
    told = "Partitions / offsets need to be provided for an alter offsets request"
    bodies: list[dict[str, Any]] = [{}, {"offsets": []}, {"offsets": None}]
    for body in bodies:
        refused = stopped.request("PATCH", PATH, json=body)
        assert (refused.status_code, refused.json()["message"]) == (400, told)


def test_a_body_that_is_no_offsets_is_refused_with_its_place_and_changes_nothing(
    stopped: Client,
) -> None:
    json = {"content-type": "application/json"}
    for body, flaw in NO_OFFSETS:
        refused = stopped.request("PATCH", PATH, content=body, headers=json)
        assert (refused.status_code, refused.json()["error_code"]) == (400, 400), body
        assert flaw in refused.json()["message"]
    assert listed(stopped) == NOTHING


def test_offsets_of_a_large_folder_are_taken_in_one_request(stopped: Client, folder: Path) -> None:
    many = [of(folder, 0)] * 9_000
    assert len(json.dumps(many)) > bodies.MOST_BYTES, "more than another body may have"
    assert patch(stopped, *many) == (200, ALTERED)
    assert listed(stopped) == {"offsets": [of(folder, 0)]}


def test_offsets_are_limited_in_their_number_and_in_their_bytes(
    stopped: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "MOST_MOVES", 1)
    status, refused = patch(stopped, of(folder, 0), of(folder, 1))
    told = "2 offsets are given, at most 1 are changed at once; nothing was changed"
    assert (status, refused["message"]) == (400, f"{told}: send them in several requests")
    monkeypatch.setattr(bodies, "MOST_BYTES_OF_OFFSETS", 99)
    status, refused = patch(stopped, of(folder, 0))
    assert (status, refused["message"]) == (413, "a body may have 99 bytes at most")
    assert listed(stopped) == NOTHING


def test_what_the_source_refuses_is_told_with_its_place_and_all_stays_as_it_is(
    stopped: Client, folder: Path
) -> None:
    status, refused = patch(stopped, of(folder, 0), of(folder, 1, size=-1))
    assert (status, refused["message"]) == (
        400,
        "offsets[1].offset.size is -1: it must be 0 or more, below 2^63; nothing was changed",
    )
    assert listed(stopped) == NOTHING


def test_a_partition_that_is_given_twice_gets_the_last_offset(
    stopped: Client, folder: Path
) -> None:
    assert patch(stopped, of(folder, 0, size=1), of(folder, 0, size=2)) == (200, ALTERED)
    assert listed(stopped) == {"offsets": [of(folder, 0, size=2)]}


def test_a_dry_run_tells_what_a_seek_changes_and_changes_nothing(
    stopped: Client, folder: Path
) -> None:
    patch(stopped, of(folder, 2))
    status, told = seek(stopped, "2023-11-14T23:13:20Z", dry_run=True)
    assert (status, told) == (
        200,
        {
            "to": "2023-11-14T23:13:20Z",
            "dry_run": True,
            "partitions": 2,
            "first": [
                {"partition": of(folder, 0)["partition"], "from": None}
                | {"to": of(folder, 0)["offset"]},
                {
                    "partition": of(folder, 2)["partition"],
                    "from": of(folder, 2)["offset"],
                    "to": None,
                },
            ],
            "message": "2 partitions would get another offset, or none",
        },
    )
    assert listed(stopped) == {"offsets": [of(folder, 2)]}
    _, done = seek(stopped, "2023-11-14T23:13:20Z")
    assert done == {
        **told,
        "dry_run": False,
        "message": "2 partitions got another offset, or none",
    }
    assert listed(stopped) == {"offsets": [of(folder, 0)]}


def test_a_dry_run_needs_no_stop(api: RestApi, stopped: Client) -> None:
    api.group.ask("carry_out", SetTargetState("connect", "a", RunState.RUNNING))
    status, told = seek(stopped, "latest", dry_run=True)
    assert (status, told["partitions"], len(told["first"])) == (200, 3, 3)


def test_a_seek_goes_to_both_ends_and_one_that_changes_nothing_says_so(
    stopped: Client, folder: Path
) -> None:
    assert seek(stopped, "latest")[1]["partitions"] == 3
    assert listed(stopped) == {"offsets": [of(folder, number) for number in range(3)]}
    assert seek(stopped, "latest")[1]["message"] == "no offset changes"
    assert seek(stopped, "earliest")[1]["partitions"] == 3
    assert listed(stopped) == NOTHING


def test_a_place_that_is_none_is_refused(stopped: Client) -> None:
    told = "to: must be earliest, latest, or a time with its zone, such as 2026-01-01T00:00:00Z"
    for to in ("", "soon", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "LATEST"):
        status, refused = seek(stopped, to)
        assert (status, refused["message"]) == (400, told)


def test_a_source_that_is_out_of_reach_is_asked_later(stopped: Client, folder: Path) -> None:
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()
    status, refused = seek(stopped, "latest")
    assert status == 503
    assert refused["message"].startswith("the source is out of reach: source.path: ")


def test_a_class_that_judges_no_offsets_takes_any_and_goes_to_the_earliest_alone(
    api: RestApi,
) -> None:
    config = {"connector.class": "Locked"}
    body = {"name": "a", "config": config, "initial_state": "STOPPED"}
    assert api.client.post("/connectors", json=body).status_code == 201
    api.group.ask("carry_out", FinishStop("a"))
    given = {"partition": {"any": 1}, "offset": {"thing": "x"}}
    assert patch(api.client, given) == (200, ALTERED)
    status, refused = seek(api.client, "latest")
    assert (status, refused["message"].partition(",")[0]) == (
        400,
        "to: this source can go to earliest",
    )
    assert seek(api.client, "earliest")[1]["first"] == [
        {"partition": {"any": 1}, "from": {"thing": "x"}, "to": None}
    ]
    assert listed(api.client) == NOTHING


def test_offsets_that_are_asked_for_in_full_come_with_what_was_left_to_read(api: RestApi) -> None:
    api.client.post("/connectors", json={"name": "a", "config": {"connector.class": "Locked"}})
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"x": "1"})
    api.group.ask("commit", Resource("a", 0), 0, 5, 5)
    offset = {"partition": {"file": "a-0"}, "offset": {"end": 1}}
    assert listed(api.client) == {"offsets": [offset]}
    told = api.client.get(f"{PATH}?extended=true").json()
    assert told == {"offsets": [offset], "lag": {"ranges": 2, "bytes": 20}}


def test_a_change_and_a_resumption_at_once_are_one_before_the_other(
    api: RestApi, stopped: Client, folder: Path
) -> None:
    patch(stopped, of(folder, 0))
    app = Client(make_app(api.service))

    async def at_once() -> list[int]:
        one = app._request("DELETE", PATH, {})  # pyright: ignore[reportPrivateUsage]
        other = app._request("PUT", "/connectors/a/resume", {})  # pyright: ignore[reportPrivateUsage]
        return [each.status_code for each in await asyncio.gather(one, other)]

    changed, resumed = asyncio.run(at_once())
    assert resumed == 202
    assert changed in {200, 400}
    assert listed(stopped) == (NOTHING if changed == 200 else {"offsets": [of(folder, 0)]})
