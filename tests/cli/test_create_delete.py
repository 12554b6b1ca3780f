"""`create` and `delete`: what is sent, and what is refused before it is."""

import io
import json
from pathlib import Path

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead.runtime.interfaces.rest.validation.configs import invalid
from fairlead_tests.cli import answered

CONFIG = {"connector.class": "SparkPipeline", "tasks.max": "4", "header": "true", "rate": "0.5"}
SENT = {"name": "flights", "config": CONFIG}
VALUELESS = 'key in c has no value: write "" for an empty text, or remove it'
YAML = """
name: flights
config:
  connector.class: SparkPipeline
  tasks.max: 4
  header: true
  rate: 0.5
"""


@pytest.mark.parametrize("content", [json.dumps(SENT), YAML], ids=["json", "yaml"])
def test_create_sends_name_and_config_as_texts(content: str, run: Run, cluster: Cluster) -> None:
    Path("c").write_text(content)
    cluster.answer("POST", "/connectors", answered.INFO, 201)
    assert run("create", "-f", "c", "--url", cluster.url) == (
        0,
        "connector flights created\n",
        "",
    )
    assert cluster.asked == [Asked("POST", "/connectors", SENT)]


def test_create_tells_what_is_strange_about_a_config(run: Run, cluster: Cluster) -> None:
    Path("c").write_text(YAML)
    cluster.answer(
        "POST",
        "/connectors",
        {**answered.INFO, "warnings": ["unknown key rate: it has no effect"]},
        201,
    )
    said = "connector flights created\nwarning: flights: unknown key rate: it has no effect\n"
    assert run("create", "-f", "c", "--url", cluster.url) == (0, said, "")


def test_a_plain_config_names_its_connector_itself(run: Run, cluster: Cluster) -> None:
    plain = {"name": "flights", "tasks.max": 4}
    Path("c.json").write_text(json.dumps(plain))
    cluster.answer("POST", "/connectors", answered.INFO, 201)
    run("create", "--filename", "c.json", "--url", cluster.url)
    config = {"name": "flights", "tasks.max": "4"}
    sent = {"name": "flights", "config": config}
    assert cluster.asked == [Asked("POST", "/connectors", sent)]


def test_a_hyphen_reads_standard_input(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(YAML.encode())))
    cluster.answer("POST", "/connectors", answered.INFO, 201)
    assert run("create", "-f", "-", "--url", cluster.url).code == 0
    assert cluster.asked == [Asked("POST", "/connectors", SENT)]


@pytest.mark.parametrize(
    "content",
    ["[{name: x}, {name: y, config: {}}]", "---\nname: x\n---\nname: y\nconfig: {}\n---\n"],
    ids=["list", "documents"],
)
def test_all_connectors_of_a_file_are_created_in_its_order(
    content: str, run: Run, cluster: Cluster
) -> None:
    Path("c").write_text(content)
    cluster.answer("POST", "/connectors", answered.INFO, 201)
    ended = run("create", "-f", "c", "--url", cluster.url)
    assert ended == (0, "connector x created\nconnector y created\n", "")
    assert cluster.asked == [
        Asked("POST", "/connectors", {"name": "x", "config": {"name": "x"}}),
        Asked("POST", "/connectors", {"name": "y", "config": {}}),
    ]


def test_of_several_connectors_one_that_is_refused_does_not_keep_the_others_from_it(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text("[{name: x}, {name: y}]")
    refusal = {"error_code": 409, "message": "the name is taken"}
    cluster.answer("POST", "/connectors", refusal, 409)
    assert run("create", "-f", "c", "--url", cluster.url) == (
        1,
        "",
        "fairlead: connector x: the name is taken (HTTP 409)\n"
        "fairlead: connector y: the name is taken (HTTP 409)\n",
    )
    assert [each.path for each in cluster.asked] == ["/connectors", "/connectors"]


def test_a_refusal_is_told_in_the_cluster_s_words(run: Run, cluster: Cluster) -> None:
    Path("c").write_text(YAML)
    refusal = {"error_code": 409, "message": "Connector flights already exists"}
    cluster.answer("POST", "/connectors", refusal, 409)
    assert run("create", "-f", "c", "--url", cluster.url) == (
        1,
        "",
        "fairlead: Connector flights already exists (HTTP 409)\n",
    )


def test_the_errors_of_a_config_are_told_without_a_request_to_make(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text(YAML)
    message = invalid(["x: y"]).message
    cluster.answer("POST", "/connectors", {"error_code": 400, "message": message}, 400)
    assert run("create", "-f", "c", "--url", cluster.url).err == (
        "fairlead: Connector configuration is invalid and contains the following 1 error(s):\n"
        "fairlead: x: y\nfairlead: nothing was changed (HTTP 400)\n"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "c holds no connector: name and config are expected"),
        ("[1]", "c holds no connector: name and config are expected"),
        ("tasks.max: 1", "c gives the connector no name: add one"),
        ("name: ' '", "c gives the connector no name: add one"),
        ("name: x\nconfig: 3", "config in c holds no keys and values"),
        ("name: x\nconfig: {}\nmore: 1", "c has more beside name and config: move it into config"),
        ("name: x\nkey: [1]", "key in c is no text, number, true or false: put it in quotes"),
        ("name: x\nkey: null", VALUELESS),
        ("name: x\nkey: ~", VALUELESS),
        ('{"name": "x", "key": null}', VALUELESS),
        ("name: x\nkey:", VALUELESS),
        (
            "name: x\nkey: 1\nkey: 2",
            "c is neither JSON nor YAML: the key key occurs twice in line 3",
        ),
        (
            "name: x\nconfig: {a: 1, b: 2, a: 1}",
            "c is neither JSON nor YAML: the key a occurs twice in line 2",
        ),
        ('{"name": "x", "key": "1", "key": "2"}', "c has the key key twice: keep one of them"),
        (
            "name: x\n key: [",
            "c is neither JSON nor YAML: mapping values are not allowed here in line 2",
        ),
        ("[]", "c holds no connector: name and config are expected"),
        ("---\n---\n", "c holds no connector: name and config are expected"),
        ("name: x\nconfig:", "config in c holds no keys and values"),
        ("---\nname: x\n---\ntasks.max: 1", "c gives the connector no name: add one"),
        (
            "- name: x\n- name: y\n- name: x\n  config: {}",
            "c has more than one connector x: which one is meant?",
        ),
    ],
)
def test_a_file_that_makes_no_sense_is_not_sent(
    content: str, said: str, run: Run, cluster: Cluster
) -> None:
    Path("c").write_text(content)
    assert run("create", "-f", "c", "--url", cluster.url) == (2, "", f"fairlead: {said}\n")
    assert cluster.asked == []


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"[" * 100_000, b"\x00", b"a: *b", b'a: !!int ""']
)
def test_hostile_bytes_are_a_misuse(content: bytes, run: Run, cluster: Cluster) -> None:
    Path("c").write_bytes(content)
    ended = run("create", "-f", "c", "--url", cluster.url)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("fairlead: c is neither JSON nor YAML: ")


def test_a_file_that_is_not_there_fails(run: Run) -> None:
    assert run("create", "-f", "absent") == (
        1,
        "",
        "fairlead: absent cannot be read: No such file or directory\n",
    )


def test_delete_deletes_by_name(run: Run, cluster: Cluster) -> None:
    cluster.answer("DELETE", "/connectors/a%2Fb%20c", None, 204)
    assert run("delete", "connector", "a/b c", "--url", cluster.url) == (
        0,
        "connector a/b c deleted\n",
        "",
    )
    assert cluster.asked == [Asked("DELETE", "/connectors/a%2Fb%20c", None)]


def test_several_connectors_are_deleted_and_those_that_are_not_there_are_named_at_the_end(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("DELETE", "/connectors/b", None, 204)
    assert run("delete", "connector", "a", "b", "--url", cluster.url) == (
        1,
        "connector b deleted\n",
        "fairlead: connector a: there is no /connectors/a (HTTP 404)\n",
    )


def test_delete_says_what_it_waits_for(run: Run, cluster: Cluster) -> None:
    told = "connector a is being deleted; it waits until what counts already is published in /sink"
    cluster.answer("DELETE", "/connectors/a", {"message": told}, 202)
    assert run("delete", "connector", "a", "--url", cluster.url) == (0, f"{told}\n", "")


def test_delete_gives_up_rows_only_if_it_is_told_to(run: Run, cluster: Cluster) -> None:
    told = "connector a is deleted; given up is batch 0 of a-1"
    cluster.answer("DELETE", "/connectors/a?publish=false", {"message": told})
    assert run("delete", "connector", "a", "--give-up", "--url", cluster.url) == (
        0,
        f"{told}\n",
        "",
    )
    assert cluster.asked == [Asked("DELETE", "/connectors/a?publish=false", None)]


def test_delete_of_what_is_not_there_fails(run: Run, cluster: Cluster) -> None:
    assert run("delete", "connector", "x", "--url", cluster.url) == (
        1,
        "",
        "fairlead: there is no /connectors/x (HTTP 404)\n",
    )
