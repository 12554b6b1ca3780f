"""What REST takes and refuses of where a connector's work may run."""

from collections.abc import Mapping, Sequence

import pytest
from rest.conftest import RestApi

from fairlead.runtime.pipeline.spi.config import ConfigDef
from fairlead.runtime.pipeline.spi.keys.placement import PLACEMENT, with_placement
from fairlead_tests.rest.client import Client

LOCKED = {"connector.class": "Locked"}
VALIDATE = "/connector-plugins/Locked/config/validate"
WEIGHTS = "must give each task once, with a weight from 1 to 1000: `0:5, 3:20`"
BLANK = "an item is blank: there is a comma too many"
NO_LABEL = "is no label: at most 64 characters that can be printed, without commas"
NO_NAME = "is no worker's name: at most 200 characters that can be printed"
MANY = "there are 101 items: at most 100 are allowed"
PLAIN = "must not have ${...} references: the coordinator reads it without resolving them"


def test_a_class_has_the_keys_of_placement_with_their_meaning(client: Client) -> None:
    for plugin in ("SparkPipeline", "Locked"):
        keys = client.get(f"/connector-plugins/{plugin}/config").json()
        told = {each["name"]: each["type"] for each in keys if each["group"] == "Placement"}
        assert told == {
            "placement.weight": "INT",
            "placement.task.weights": "LIST",
            "placement.workers": "LIST",
            "placement.tags": "LIST",
            "placement.zones": "LIST",
        }


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("placement.weight", "0", "Value must be at least 1"),
        ("placement.weight", "1001", "Value must be no more than 1000"),
        ("placement.weight", "1_0", "Not a number of type INT"),
        ("placement.weight", "+5", "must be from 1 to 1000, in plain digits"),
        ("placement.task.weights", "0:5,0:6", WEIGHTS),
        ("placement.task.weights", "3", WEIGHTS),
        ("placement.workers", "w1,", BLANK),
        ("placement.workers", "w" * 201, f"'{'w' * 64}' {NO_NAME}"),
        ("placement.workers", "a\tb", f"'a\\tb' {NO_NAME}"),
        ("placement.workers", ",".join(["w1"] * 101), MANY),
        ("placement.tags", "gpu,,ssd", BLANK),
        ("placement.zones", ",".join(["a"] * 101), MANY),
        ("placement.tags", "g" * 65, f"'{'g' * 64}' {NO_LABEL}"),
        ("placement.zones", "a\tb", f"'a\\tb' {NO_LABEL}"),
        ("placement.tags", "${env:TAGS}", PLAIN),
        ("placement.tag", "gpu", "there is no such key: did you mean placement.tags?"),
        ("placement.", "x", "there is no such key: did you mean placement.tags?"),
    ],
)
def test_what_is_no_good_is_refused_and_says_why(
    client: Client, key: str, value: str, said: str
) -> None:
    refused = client.put("/connectors/a/config", json={**LOCKED, key: value})
    is_list = key not in {"placement.weight", "placement."}
    shown = f"[{', '.join(each.strip() for each in value.split(','))}]" if is_list else value
    words = f"Invalid value {shown} for configuration {key}: {said}"
    assert (refused.status_code, refused.json()["message"].splitlines()[1]) == (400, words)
    told = client.put(VALIDATE, json={**LOCKED, "name": "a", key: value}).json()
    errors = {each["value"]["name"]: each["value"]["errors"] for each in told["configs"]}
    assert (told["error_count"], errors[key]) == (len(errors[key]), [words, *errors[key][1:]])


def test_it_is_examined_for_a_class_that_does_not_know_the_common_keys() -> None:
    def errors(config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return with_placement(ConfigDef(()).check(config), config).errors

    assert errors({"placement.weight": "5", "placement.tags": "gpu", "other": "x"}) == {}
    assert errors({"placement.weight": "0"}) == {"placement.weight": ("Value must be at least 1",)}


def test_every_key_has_a_default_that_asks_nothing() -> None:
    assert [each.parse(None) for each in PLACEMENT] == [1, (), (), (), ()]


def test_a_change_of_placement_alone_leaves_tasks_and_versions_alone(api: RestApi) -> None:
    config = {**LOCKED, "password": "hunter2"}
    api.client.put("/connectors/a/config", json=config)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    before = api.client.get("/groups/connect").json()
    put = {**LOCKED, "password": "********", "placement.tags": "gpu"}
    assert api.client.put("/connectors/a/config", json=put).status_code == 200
    after = api.client.get("/groups/connect").json()
    assert after["group_epoch"] == before["group_epoch"] + 1
    assert (after["last_rebalance"]["cause"], after["last_rebalance"]["subject"]) == (
        "placement-changed",
        "a",
    )
    told = api.client.get("/connectors/a/tasks").json()
    assert told == [{"id": {"connector": "a", "task": 0}, "config": {"n": "0"}}]
