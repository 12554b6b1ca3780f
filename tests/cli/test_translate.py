"""`translate`: configs of Connect's connectors, with what has no counterpart as comments."""

import json
from pathlib import Path

import yaml
from cli.conftest import Run

SOURCE = "name=lines\nconnector.class=FileStreamSource\nfile=/data/a.txt\ntopic=t\nbatch.size=7\n"
WRITTEN = """\
# 4 remarks:
# file: a file is read once, when it is complete: what is appended later is not
# batch.size: batch.target.ms says how large a batch is
# value.converter: it was that of the worker: json is taken, look at it
# sink.bootstrap.servers: the brokers were those of the worker: --bootstrap-servers says which
name: lines
config:
  connector.class: SparkPipeline
"""
SINK = {"name": "out", "config": {"connector.class": "FileStreamSink", "topics": "t"}}
MINE = {"name": "mine", "connector.class": "com.example.Mine"}


def test_a_file_of_a_standalone_worker_is_written_as_yaml_with_comments(run: Run) -> None:
    Path("a.properties").write_text(SOURCE)
    ended = run("translate", "a.properties")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(WRITTEN)
    assert yaml.safe_load(ended.out)["config"]["source.glob"] == "a.txt"
    servers = run("translate", "a.properties", "--bootstrap-servers", "b:1").out
    assert yaml.safe_load(servers)["config"]["sink.bootstrap.servers"] == "b:1"
    assert "--bootstrap-servers" not in servers


def test_what_is_written_is_read_again_as_it_is(run: Run) -> None:
    Path("a.properties").write_text(SOURCE)
    Path("b.json").write_text(json.dumps(SINK))
    Path("c.yaml").write_text(run("translate", "a.properties", "b.json").out)
    as_json = run("translate", "a.properties", "b.json", "-o", "json")
    assert as_json.err.splitlines()[1] == (
        "fairlead: lines: batch.size: batch.target.ms says how large a batch is"
    )
    again = [
        {"name": each["name"], "config": each["config"]}
        for each in yaml.safe_load_all(Path("c.yaml").read_text())
    ]
    assert again == json.loads(as_json.out)


def test_a_class_that_is_not_known_hides_nothing_of_the_others(run: Run) -> None:
    Path("all.json").write_text(json.dumps([MINE, SINK]))
    ended = run("translate", "all.json")
    assert ended.code == 1
    assert yaml.safe_load(ended.out)["name"] == "out"
    assert ended.err.startswith(
        "fairlead: mine cannot be translated: its class is com.example.Mine; those that are known"
        " are FileStreamSource, FileStreamSink, JdbcSource, "
    )
    Path("own.json").write_text('{"name": "x", "connector.class": "SparkPipeline"}')
    assert run("translate", "own.json") == (
        *(1, "", "fairlead: x is a config of fairlead's already\n"),
    )
