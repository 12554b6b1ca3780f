"""`offsets`: what is listed, set, reset and sought, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead.actors.messages.orders import MUST_BE_STOPPED

PATH = "/connectors/flights/offsets"
ONE: dict[str, Any] = {"partition": {"path": "a.csv"}, "offset": {"size": 4}}
LISTED: dict[str, Any] = {"offsets": [ONE], "lag": {"ranges": 2, "bytes": 20}}
SET = {"message": "The offsets for this connector have been altered successfully"}
TABLE = """\
PARTITION          OFFSET
{"path": "a.csv"}  {"size": 4}

Left to read:  2 ranges, 20 bytes
"""
SOUGHT: dict[str, Any] = {
    "to": "latest",
    "dry_run": True,
    "partitions": 3,
    "first": [{"partition": {"path": "a.csv"}, "from": None, "to": {"size": 4}}],
    "message": "3 partitions would get another offset, or none",
}
MOVES = """\
PARTITION          FROM  TO
{"path": "a.csv"}        {"size": 4}
and 2 more

In all:  3 partitions would get another offset, or none
"""


def test_offsets_are_listed_with_what_is_left_to_read(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", PATH, LISTED)
    assert run("offsets", "get", "flights", "--url", cluster.url) == (0, TABLE, "")
    records = {"ranges": 2, "bytes": 0, "records": 20}  # what Kafka tells of a lag
    cluster.answer("GET", PATH, {**LISTED, "lag": records})
    in_records = TABLE.replace("20 bytes", "20 records")
    assert run("offsets", "get", "flights", "--url", cluster.url) == (0, in_records, "")


def test_what_is_printed_as_json_can_be_set_again(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.answer("GET", PATH, LISTED)
    cluster.answer("PATCH", PATH, SET)
    got = run("offsets", "get", "flights", "-o", "json", "--url", cluster.url)
    assert json.loads(got.out) == LISTED
    (tmp_path / "kept.json").write_text(got.out)
    put = run("offsets", "set", "flights", "-f", "kept.json", "--url", cluster.url)
    assert put == (0, f"{SET['message']}\n", "")
    assert cluster.asked[-1] == Asked("PATCH", PATH, {"offsets": [ONE]})


def test_one_offset_is_set_or_taken_away(run: Run, cluster: Cluster) -> None:
    cluster.answer("PATCH", PATH, SET)
    for offset, sent in (('{"size": 4}', {"size": 4}), ("null", None)):
        given = ("--partition", '{"path": "a.csv"}', "--offset", offset)
        assert run("offsets", "set", "flights", *given, "--url", cluster.url).code == 0
        assert cluster.asked[-1].body == {"offsets": [{**ONE, "offset": sent}]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "give either --filename, or --partition with --offset"),
        (("--partition", "{}"), "give either --filename, or --partition with --offset"),
        (("--partition", "{", "--offset", "null"), "--partition is no JSON: "),
    ],
)
def test_what_names_no_offset_is_sent_nowhere(
    given: tuple[str, ...], said: str, run: Run, cluster: Cluster
) -> None:
    ended = run("offsets", "set", "flights", *given, "--url", cluster.url)
    assert (ended.code, cluster.asked) == (2, [])
    assert said in ended.err


def test_offsets_are_reset(run: Run, cluster: Cluster) -> None:
    cluster.answer("DELETE", PATH, {"message": "reset"})
    assert run("offsets", "reset", "flights", "--url", cluster.url) == (0, "reset\n", "")


def test_a_seek_shows_where_its_partitions_go(run: Run, cluster: Cluster) -> None:
    cluster.answer("POST", f"{PATH}/seek", SOUGHT)
    place = ("--to", "latest", "--dry-run", "--url", cluster.url)
    assert run("offsets", "seek", "flights", *place) == (0, MOVES, "")
    assert cluster.asked == [Asked("POST", f"{PATH}/seek", {"to": "latest", "dry_run": True})]


def test_what_is_refused_is_told(run: Run, cluster: Cluster) -> None:
    refused = {"error_code": 400, "message": "Connectors must be in the STOPPED state"}
    cluster.answer("DELETE", PATH, refused, 400)
    ended = run("offsets", "reset", "flights", "--url", cluster.url)
    assert (ended.code, "must be in the STOPPED state" in ended.err) == (1, True)


@pytest.mark.parametrize("words", [["reset", "flights"], ["seek", "flights", "--to", "latest"]])
def test_offsets_of_a_connector_that_is_not_stopped_are_told_with_the_command_that_stops_it(
    words: list[str], run: Run, cluster: Cluster
) -> None:
    refusal = {"error_code": 400, "message": MUST_BE_STOPPED.format("flights")}
    cluster.answer("DELETE", PATH, refusal, 400)
    cluster.answer("POST", f"{PATH}/seek", refusal, 400)
    said = "the offsets of flights were not changed: first `fairlead stop flights --wait`"
    told = run("offsets", *words, "--url", cluster.url)
    assert told == (1, "", f"fairlead: {said} (HTTP 400)\n")


def test_offsets_of_several_connectors_are_sought_and_refusals_are_told_at_the_end(
    run: Run, cluster: Cluster
) -> None:
    for name in ("b", "c"):
        cluster.answer("POST", f"/connectors/{name}/offsets/seek", SOUGHT)
    words = ["a", "b", "c", "--to", "latest", "--dry-run", "--url", cluster.url]
    refused = "fairlead: connector a: there is no /connectors/a/offsets/seek (HTTP 404)\n"
    both = f"Connector b\n{MOVES}\nConnector c\n{MOVES}"
    assert run("offsets", "seek", *words) == (1, both, refused)
