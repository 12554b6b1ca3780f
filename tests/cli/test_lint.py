"""`lint`, `schema` and `generate`: configs are written and checked without a node."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from cli.conftest import Cluster, Run

from fairlead.runtime.interfaces.replies.connectors import ConfigKeyInfo

GOOD = """\
name: a
config:
  connector.class: SparkPipeline
  source.path: /in
  source.format: csv
  sink.path: /out
  sink.format: parquet
"""


def test_a_config_that_a_node_would_take_has_no_finding(run: Run) -> None:
    Path("a.yaml").write_text(GOOD)
    assert run("lint", "a.yaml") == (0, "no finding\n", "")


def test_each_finding_has_its_file_line_and_connector(run: Run) -> None:
    Path("a.yaml").write_text(
        GOOD.replace("csv", "cvs") + "  tasks.max: 0\n  sink.pth: x\n  labels: x\n  strange: 1\n"
    )
    ended = run("lint", "a.yaml")
    places = [line.partition(": ") for line in ended.out.splitlines()[:-1]]
    assert [(place, told.partition(":")[0]) for place, _, told in places] == [
        ("a.yaml:8", "error"),
        ("a.yaml:10", "error"),
        ("a.yaml:5", "error"),
        ("a.yaml:9", "error"),
        ("a.yaml:11", "warning"),
    ]
    assert (ended.code, ended.out.splitlines()[-1]) == (1, "4 errors, 1 warning")


def test_a_warning_alone_is_a_failure_only_if_that_is_wanted(run: Run) -> None:
    Path("a.yaml").write_text(f"{GOOD}  strange: 1\n")
    assert run("lint", "a.yaml").code == 0
    strict = run("lint", "--strict", "-o", "json", "a.yaml")
    finding = {
        "file": "a.yaml",
        "line": 8,
        "severity": "warning",
        "connector": "a",
        "text": "unknown key strange: it has no effect",
    }
    assert (strict.code, json.loads(strict.out)) == (1, [finding])


def test_all_files_are_checked_whatever_is_wrong_with_one(run: Run) -> None:
    folder = Path("connectors/more")
    folder.mkdir(parents=True)
    (folder.parent / "1.yaml").write_text("name: a\n a: [")
    (folder.parent / "2.json").write_text('{"name": "b",\n "config": {}}')
    (folder.parent / "3.yaml").write_text(f"- name: b\n  connector.class: Nothing\n---\n{GOOD}")
    (folder / "4.properties").write_text("name=c\nconnector.class=SparkPipeline\ntasks.max=x\n")
    lines = run("lint", "connectors", str(folder / "4.properties"), "-R").out.splitlines()
    heads = [line.partition(": error: ") for line in lines if ": error: " in line]
    assert [place for place, _, _ in heads[:4]] == [
        "connectors/1.yaml:2",
        "connectors/2.json:1",
        "connectors/3.yaml:1",
        "connectors/3.yaml:2",
    ]
    assert heads[1][2] == "b: connector.class is missing: it names the plugin"
    assert heads[2][2] == "b: connectors/2.json has a connector b, too: which one is meant?"
    assert heads[3][2].startswith("b: Failed to find any class")
    assert {place for place, _, _ in heads[4:]} == {"connectors/more/4.properties"}


def test_of_a_plugin_of_connect_the_keys_of_its_sink_are_checked(run: Run) -> None:
    plugin = "name: orders\nconfig:\n  connector.class: io.debezium.MakerConnector\n  x: y\n"
    Path("a.yaml").write_text(plugin)
    alone = run("lint", "a.yaml")
    assert (alone.code, "0 errors, 1 warning" in alone.out) == (0, True)
    sink = "  sink.type: files\n  sink.path: /lake\n"
    Path("a.yaml").write_text(f"{plugin}{sink}  sink.format: parquet\n  sink.formt: x\n")
    found = run("lint", "a.yaml")
    assert found.code == 1
    assert found.out.startswith("a.yaml:8: error: orders: Invalid value x for configuration")


@pytest.mark.parametrize("content", ["\x00", "\xff", "[" * 3000, "!!python/object:os.system {}"])
def test_hostile_files_are_findings(content: str, run: Run) -> None:
    Path("a.yaml").write_bytes(content.encode("latin-1"))
    ended = run("lint", "a.yaml")
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.startswith("a.yaml")


def test_no_secret_of_a_config_is_shown(run: Run) -> None:
    Path("a.yaml").write_text(f"{GOOD}  errors.deadletterqueue.sasl.password: s3cret\n  x.y: z\n")
    assert "s3cret" not in run("lint", "a.yaml").out


def test_a_generated_config_is_valid_once_what_is_required_is_filled_in(run: Run) -> None:
    ended = run("generate", "connector", "--name", "mine", "--sink", "postgres")
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 100
    values = {"format": "csv", "path": "/in", "url": "postgresql://db/x"}
    filled = [
        f"{line} {values[line.rstrip(':').rpartition('.')[2]]}" if line.endswith(":") else line
        for line in ended.out.splitlines()[2:]
    ]
    Path("mine.yaml").write_text("\n".join([*ended.out.splitlines()[:2], *filled]))
    checked = run("lint", "mine.yaml")
    assert (checked.code, checked.out.count("error")) == (0, checked.out.count("0 errors"))


def test_a_generated_config_with_all_keys_is_yaml(run: Run) -> None:
    every = run("generate", "connector", "--source", "kafka", "--all").out
    config = yaml.safe_load(every)["config"]
    assert config["source.type"] == "kafka"
    assert '  # source.topics: ""\n' in every
    unknown = run("generate", "connector", "--source", "nothing")
    assert (unknown.code, "there is no source type nothing; there is: files" in unknown.err) == (
        2,
        True,
    )


def test_a_config_of_a_plugin_of_connects_has_the_keys_that_the_cluster_tells(
    run: Run, cluster: Cluster
) -> None:
    def key(name: str, importance: str, *, required: bool) -> dict[str, object]:
        default = None if required else "x"
        about = "What it is\n about"
        info = ConfigKeyInfo(
            name, "STRING", required, default, importance, about, None, 0, "NONE", name, ()
        )
        return {**msgspec.to_builtins(info)}

    keys = [
        key("file", "HIGH", required=False),
        key("batch.size", "LOW", required=False),
        key("topic", "HIGH", required=True),
    ]
    cluster.answer("GET", "/connector-plugins/FileStreamSource/config", keys)
    asked = ("generate", "connector", "--class", "FileStreamSource", "--url", cluster.url)
    assert run(*asked).out.splitlines() == [
        'name: "my-connector"',
        "config:",
        "  connector.class: FileStreamSource",
        "  # What it is about. Required.",
        "  topic:",
        "  # What it is about",
        '  # file: "x"',
    ]
    assert "\n  sink.type: postgres\n" in run(*asked, "--sink", "postgres").out
    keys = [key("name", "HIGH", required=True), key("type", "HIGH", required=True)]
    cluster.answer("GET", "/connector-plugins/FileStreamSink/config", keys)
    assert run(*asked, "--sink", "FileStreamSink").out.splitlines()[7:] == [
        "",
        "  sink.type: connect",
        "  sink.connector.class: FileStreamSink",
        "  # What it is about. Required.",
        "  sink.connect.config.type:",
    ]
    cluster.answer(
        "GET", "/connector-plugins/Nope/config", {"message": "Unknown plugin Nope."}, 404
    )
    unknown = run("generate", "connector", "--class", "Nope", "--url", cluster.url)
    assert (unknown.code, "Unknown plugin Nope." in unknown.err) == (1, True)


@pytest.fixture
def validate(run: Run) -> Any:
    """Returns the paths of what the schema finds in a document."""
    pytest.importorskip("jsonschema", reason="the schema is judged by jsonschema")
    validators = import_module("jsonschema").Draft202012Validator
    schema = json.loads(run("schema").out)
    validators.check_schema(schema)

    def errors(document: object) -> list[str]:
        return sorted(error.validator for error in validators(schema).iter_errors(document))

    return errors


def test_the_schema_accepts_what_a_file_may_hold(validate: Any) -> None:
    document = yaml.safe_load(GOOD)
    plain = {"name": "a", **document["config"]}
    assert [validate(each) for each in (document, plain, [document, plain])] == [[], [], []]
    config = {**document["config"], "tasks.max": 3, "transforms": "t", "transforms.t.type": "sql"}
    config |= {"labels": "team=a", "source.option.x": "y", "batch.max.rows": "${env:ROWS}"}
    assert validate({"name": "a", "config": config}) == []
    foreign = {"connector.class": "org.example.Mine", "anything": "goes"}
    assert validate({"name": "b", "config": foreign}) == []


@pytest.mark.parametrize(
    ("changes", "validator"),
    [
        ({"source.formt": "csv"}, "propertyNames"),
        ({"tasks.max": "many"}, "anyOf"),
        ({"source.type": "nothing"}, "enum"),
        ({"source.type": "kafka"}, "required"),
        ({"source.header": "perhaps"}, "anyOf"),
        ({"tasks.max": [1]}, "anyOf"),
    ],
)
def test_the_schema_finds_what_a_node_refuses(
    changes: dict[str, object], validator: str, validate: Any
) -> None:
    document = yaml.safe_load(GOOD)
    found = validate({"name": "a", "config": {**document["config"], **changes}})
    expected = {"propertyNames": "anyOf"}.get(validator, validator)
    assert found == [expected]
