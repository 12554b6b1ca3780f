"""The command `import`: its plan, and what it says of answers that are no good."""

import itertools
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Cluster, Ended, Run, in_each_pause, serving

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JDBC_SINK = "io.aiven.connect.jdbc.JdbcSinkConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = f"""\
bootstrap.servers=kafka:9092
group.id=connect
key.converter={STRING}
value.converter={STRING}
value.converter.secret.password=hush
value.converter.schemas.enable=true
topic.creation.enable=true
offset.storage.topic=connect-offsets
config.providers=vault
"""
SETTINGS = {
    "bootstrap.servers": "kafka:9092",
    "group.id": "connect",
    "key.converter": STRING,
    "value.converter": STRING,
    "value.converter.secret.password": "********",
    "offset.storage.topic": "connect-offsets",
    "config.providers": "vault",
}
LIST = "/connectors?expand=info&expand=status"
NEW = {"name": "x", "is_new": True, "changes": [], "warnings": []}


def entry(name: str, connector: str = "FileStreamSource", **config: str) -> dict[str, Any]:
    """Return a connector of Connect that runs with one task."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    states = {
        "connector": {"state": "RUNNING", "worker_id": "c:8083"},
        "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "c:8083"}],
    }
    return {
        "info": {"name": name, "config": {"name": name, "connector.class": connector, **given}},
        "status": {"name": name, **states, "type": "source"},
    }


@pytest.fixture
def connect() -> Iterator[Cluster]:
    """A Kafka Connect with one source of files."""
    told = Cluster()
    told.answer("GET", "/", {"version": "4.3.0", "commit": "x", "kafka_cluster_id": "k"})
    told.answer("GET", LIST, {"lines": entry("lines")})
    classes = [{"class": FILE_SOURCE, "type": "source", "version": "4.3.0"}]
    told.answer("GET", "/connector-plugins", classes)
    told.answer("GET", "/connectors/lines/offsets", {"offsets": []})
    with serving(told):
        yield told


@pytest.fixture
def node(cluster: Cluster) -> Cluster:
    """A node that has the same properties and the plugin."""
    cluster.answer("GET", "/settings", {"settings": [setting(*each) for each in SETTINGS.items()]})
    classes = [{"class": FILE_SOURCE, "type": "source", "version": "4.3.0"}]
    cluster.answer("GET", "/connector-plugins", classes)
    cluster.answer("POST", "/apply", [NEW])
    cluster.answer("GET", "/connectors", ["flights"])
    return cluster


def setting(key: str, value: str) -> dict[str, str]:
    rest = {"default": "", "unit": "", "source": "file", "origin": "f", "meaning": ""}
    return {"name": key, "value": value, **rest}


@pytest.fixture
def ask(run: Run, connect: Cluster, node: Cluster, tmp_path: Path) -> Run:
    """Run `import` between both, with more words."""
    Path("worker.properties").write_text(WORKER)

    def ran(*words: str | Path, source: str = "") -> Ended:
        given = ("--from", source or connect.url, "--worker-config", "worker.properties")
        return run("import", *words, *given, "--url", node.url, "--record", tmp_path / "r.jsonl")

    return ran


def planned(ended: Ended) -> dict[str, Any]:
    """Return what a plan in JSON has of each connector."""
    assert (ended.code, ended.err) == (0, "")
    return {each["name"]: each for each in json.loads(ended.out)["connectors"]}


def test_without_a_word_nothing_but_the_plan_is_made(
    ask: Run, connect: Cluster, node: Cluster, tmp_path: Path
) -> None:
    ended = ask()
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "CONNECTOR  CLASS             VERSION  THERE    HERE       REMARKS",
        "lines      FileStreamSource  4.3.0    RUNNING  unchanged",
        "",
        "Properties that connectors inherit",
        "the properties of the workers there and those of the node agree",
    ]
    assert ended.err == (
        "fairlead: nothing was changed: with --yes those that are unchanged are moved, 1 of 1\n"
    )
    assert {each.method for each in connect.asked} == {"GET"}
    orders = [each for each in node.asked if each.method != "GET"]
    config = {"name": "lines", "connector.class": "FileStreamSource"}
    body = {"connectors": [{"name": "lines", "config": config}], "dry_run": True}
    assert [(each.path, each.body) for each in orders] == [("/apply", body)]
    assert not (tmp_path / "r.jsonl").exists()


def test_the_plan_says_of_each_connector_what_it_would_be_here(ask: Run, connect: Cluster) -> None:
    there = {
        "debezium": entry("debezium", "io.debezium.connector.postgresql.PostgresConnector"),
        "jdbc": entry("jdbc", JDBC_SINK),
        "odd": entry("odd", "Odd"),
    }
    there["debezium"]["status"]["connector"]["version"] = "3.4.0.Final"
    connect.answer("GET", LIST, there)
    found = planned(ask("-o", "json"))
    ways = {name: each["way"] for name, each in found.items()}
    assert ways == {"debezium": "plugin missing", "jdbc": "equivalent", "odd": "impossible"}
    fetch = "fairlead plugins fetch io.debezium:debezium-connector-postgres:3.4.0.Final"
    assert fetch in found["debezium"]["remarks"][0]
    assert "`fairlead translate FILE` writes such a config" in found["jdbc"]["remarks"][0]
    assert found["odd"]["remarks"] == ["no plugin here has the class Odd"]
    ended = ask("--yes", "odd")
    assert ended == (
        *(1, ""),
        "fairlead: connector odd: no plugin here has the class Odd\n"
        "fairlead: nothing was changed\n",
    )


def test_another_version_of_the_plugin_is_told(ask: Run, connect: Cluster) -> None:
    classes = [{"class": FILE_SOURCE, "type": "source", "version": "3.9.1"}]
    connect.answer("GET", "/connector-plugins", classes)
    found = planned(ask("-o", "json"))["lines"]
    assert (found["way"], found["version"]) == ("unchanged", "3.9.1")
    assert found["remarks"] == [
        "its plugin has version 4.3.0 here, 3.9.1 there; the plugin of FileStreamSourceConnector"
        " comes by `fairlead plugins fetch org.apache.kafka:connect-file:3.9.1`"
    ]


def test_properties_that_differ_are_told_and_keep_back_what_inherits_them(
    ask: Run, connect: Cluster, node: Cluster
) -> None:
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    here = {**SETTINGS, "value.converter": json_converter, "offset.storage.topic": "offsets"}
    del here["config.providers"]
    node.answer("GET", "/settings", {"settings": [setting(*each) for each in here.items()]})
    own = {"value_converter": STRING, "file": "${vault:a:b}"}
    connect.answer("GET", LIST, {"lines": entry("lines"), "own": entry("own", **own)})
    connect.answer("GET", "/connectors/own/offsets", {"offsets": []})
    ended = ask("-o", "json")
    plan = json.loads(ended.out)
    assert [(each["key"], each["there"], each["here"]) for each in plan["differences"]] == [
        ("value.converter", STRING, json_converter),
        ("offset.storage.topic", "connect-offsets", "offsets"),
        ("config.providers", "vault", None),
    ]
    assert {name: each["remarks"] for name, each in planned(ended).items()} == {
        "lines": [
            "it inherits value.converter, which is StringConverter"
            " value.converter.secret.password=******** there and JsonConverter"
            " value.converter.secret.password=******** here"
        ],
        "own": ["it refers to the provider vault of config.providers, which this node has not"],
    }
    accepted = planned(ask("-o", "json", "--accept-differences"))
    assert {each["way"] for each in accepted.values()} == {"unchanged"}
    assert "hush" not in ended.out


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            (400, {"error_code": 400, "message": "file is missing"}),
            "file is missing (HTTP 400)",
        ),
        (
            (200, [{**NEW, "is_new": False, "changes": [{"key": "k", "from": "a", "to": "b"}]}]),
            "there is another connector of this name here, which differs in k",
        ),
        (
            (200, [{**NEW, "name": "lines", "is_new": False}]),
            "it runs here already: `fairlead stop lines` first",
        ),
    ],
    ids=["invalid", "another", "runs"],
)
def test_what_the_node_does_not_take_is_told_in_its_words(
    answer: tuple[int, object], told: str, ask: Run, node: Cluster
) -> None:
    status, body = answer
    node.answer("POST", "/apply", body, status)
    node.answer("GET", "/connectors", ["lines"])
    state = {"connector": {"state": "RUNNING"}, "tasks": []}
    node.answer("GET", "/connectors/lines/status", state)
    found = planned(ask("-o", "json"))["lines"]
    assert (found["way"], found["remarks"]) == ("impossible", [told])


def record_of(connect: Cluster, tmp_path: Path, *steps: str) -> None:
    """Write a record of imports, of steps as `NAME: STEP`."""
    lines: list[dict[str, object]] = [{"connect": "connect@k", "cluster": "abc"}]
    for each in steps:
        name, _, step = each.partition(": ")
        lines.append({"connector": name, "step": step, "time_ms": 1})
    path = tmp_path / "r.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    connect.answer("GET", "/connectors/lines/status", entry("lines")["status"])


def test_what_has_begun_goes_on_whatever_is_wrong_by_now(
    ask: Run, connect: Cluster, node: Cluster, tmp_path: Path
) -> None:
    node.answer("POST", "/apply", {"error_code": 400, "message": "no file"}, 400)
    record_of(connect, tmp_path, "lines: stopping there", "lines: stopped there")
    found = planned(ask("-o", "json"))["lines"]
    assert (found["way"], found["step"], found["remarks"]) == (
        "unchanged",
        "stopped there",
        ["its import has begun: stopped there"],
    )


def test_a_return_names_what_it_returns_and_what_is_gone(
    ask: Run, connect: Cluster, tmp_path: Path
) -> None:
    record_of(connect, tmp_path, "lines: moved", "gone: moved", "back: moved", "back: returned")
    ended = ask("--back")
    assert ended.out.split() == ["CONNECTOR", "STEP", "REASON", "lines", "moved"]
    assert ended.err == (
        "fairlead: connector gone is not in Kafka Connect any more, and is left as it is\n"
        "fairlead: nothing was changed: with --yes they are returned\n"
    )
    record_of(connect, tmp_path, "back: moved", "back: returned")
    assert ask("--back") == (0, "nothing of it was imported\n", "")


def test_what_has_moved_and_runs_at_both_sides_is_told(
    ask: Run, connect: Cluster, node: Cluster, tmp_path: Path
) -> None:
    record_of(connect, tmp_path, "lines: moved")
    node.answer("GET", "/connectors", ["lines"])
    node.answer("GET", "/connectors/lines/status", entry("lines")["status"])
    assert planned(ask("-o", "json"))["lines"]["way"] == "moved"
    ended = ask("--yes")
    assert (ended.code, ended.err) == (
        1,
        "fairlead: connector lines: it is RUNNING there, too: stop it on one of the two sides\n",
    )


def test_a_connect_that_stops_nothing_is_told_as_such(
    ask: Run, connect: Cluster, node: Cluster
) -> None:
    connect.answer("GET", "/", {"version": "3.4.1", "commit": "x", "kafka_cluster_id": "k"})
    missing = {"error_code": 404, "message": "HTTP 404 Not Found"}
    connect.answer("GET", "/connectors/lines/offsets", missing, 404)
    connect.answer("GET", "/connectors/lines", {"name": "lines"})
    found = planned(ask("-o", "json"))["lines"]
    assert (found["way"], found["remarks"]) == (
        "impossible",
        [
            "Kafka Connect 3.4.1 can neither stop a connector nor show its offsets, as 3.5 and"
            " later can: with --delete-there its config is kept in a file, and it is deleted there"
        ],
    )
    assert planned(ask("-o", "json", "--delete-there"))["lines"]["way"] == "unchanged"
    here = {**SETTINGS, "offset.storage.topic": "offsets"}
    node.answer("GET", "/settings", {"settings": [setting(*each) for each in here.items()]})
    found = planned(ask("-o", "json", "--delete-there"))["lines"]
    assert (found["way"], found["remarks"]) == (
        "impossible",
        [
            "Kafka Connect 3.4.1 shows no offsets, so that they stay where they are, and"
            " offset.storage.topic differs"
        ],
    )


def test_names_with_any_letters_are_asked_for_as_they_are(ask: Run, connect: Cluster) -> None:
    name = "a b/ü%?#"
    connect.answer("GET", LIST, {name: entry(name)})
    connect.answer("GET", "/connectors/a%20b%2F%C3%BC%25%3F%23/offsets", {"offsets": []})
    assert planned(ask(name, "-o", "json"))[name]["way"] == "unchanged"
    ended = ask("lines")
    assert ended == (
        *(1, ""),
        f"fairlead: {connect.url} has no connector lines; it has: {name}; nothing was changed\n",
    )


def test_the_user_of_the_url_is_sent_and_never_shown(ask: Run, connect: Cluster) -> None:
    source = connect.url.replace("http://", "http://ann:s3cret@")
    ended = ask("-o", "json", source=source)
    assert json.loads(ended.out)["connect"] == connect.url
    assert connect.authorizations[0] == f"Basic {b64encode(b'ann:s3cret').decode()}"
    connect.answer("GET", LIST, {"error_code": 401, "message": "no"}, 401)
    refused = ask(source=source)
    assert refused.code == 1
    assert "HTTP 401): --from" not in refused.err
    assert "s3cret" not in ended.out + ended.err + refused.out + refused.err
    assert "--from https://USER:PASSWORD@HOST:PORT" in refused.err


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"<html>proxy</html>", "answers, but not as Kafka Connect does (HTTP 200, '<html>"),
        (502, b"<html>proxy</html>", "refused it: without a message (HTTP 502)"),
        (200, {"lines": {"info": 1}}, "answers otherwise than Kafka Connect ("),
        (500, {"error_code": 500, "message": "Request timed out"}, "Request timed out (HTTP 500)"),
    ],
    ids=["html", "html of an error", "another document", "error"],
)
def test_an_answer_that_is_no_good_is_told(
    *,
    status: int,
    body: object,
    told: str,
    ask: Run,
    connect: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_each_pause(monkeypatch, lambda _: None)
    connect.answer("GET", LIST, body, status)
    ended = ask()
    assert (ended.code, ended.out) == (1, "")
    assert told in ended.err


def test_a_worker_that_starts_for_too_long_is_told(
    ask: Run, connect: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    ticks = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: now + next(ticks))
    in_each_pause(monkeypatch, lambda _: None)
    connect.answer("GET", LIST, {"error_code": 503, "message": "not ready"}, 503)
    told = f"did not do GET {LIST}: HTTP 503; the same command goes on from here\n"
    assert ask() == (3, "", f"fairlead: Kafka Connect at {connect.url} {told}")


def test_a_rebalance_is_waited_for(
    ask: Run, connect: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflict = {"error_code": 409, "message": "Cannot complete request momentarily"}
    listed = connect.answers["GET", LIST]
    connect.answer("GET", LIST, conflict, 409)

    def pause(_: float) -> None:
        if sum(each.path == LIST for each in connect.asked) > 6:
            connect.answers["GET", LIST] = listed

    monkeypatch.setattr("time.sleep", pause)
    assert planned(ask("-o", "json"))["lines"]["way"] == "unchanged"


def test_a_node_is_not_imported_into_itself(ask: Run, node: Cluster) -> None:
    ended = ask(source=node.url)
    told = f"fairlead: {node.url} is a node of fairlead, and no Kafka Connect: name one by --from\n"
    assert ended == (2, "", told)


def test_what_does_not_answer_is_told_with_what_to_do(ask: Run) -> None:
    ended = ask(source="http://u:hush@127.0.0.1:9")
    assert ended == (
        *(3, ""),
        "fairlead: no Kafka Connect answers at http://127.0.0.1:9; give the --from of a worker that"
        " is up, and the same command goes on\n",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--from", "ftp://x"), "--from 'ftp://x' is no http URL"),
        (("--from", "http://x:99999"), "--from 'http://x:99999' is no http URL: Port out of"),
        (("--worker-config", "no.properties"), "no.properties cannot be read: No such file"),
        (("--worker-config", "empty.properties"), "empty.properties has no group.id"),
        (("--timeout", "soon"), "'soon' is no time"),
    ],
    ids=["ftp", "port", "no file", "no group", "time"],
)
def test_a_command_line_that_is_wrong_does_nothing(
    words: tuple[str, str], told: str, run: Run, node: Cluster
) -> None:
    Path("worker.properties").write_text(WORKER)
    Path("empty.properties").write_text("bootstrap.servers=a:1\n")
    given = {"--from": "http://127.0.0.1:9", "--worker-config": "worker.properties"}
    given |= dict([words])
    ended = run("import", "--url", node.url, *(word for each in given.items() for word in each))
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    bare = run("import", "--url", node.url)
    assert bare.err == ("fairlead: --from URL and --worker-config FILE say what is imported\n")
