"""`config`: every setting, and where its value comes from."""

import json
from pathlib import Path

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead.runtime.config.keys import KEYS

HANDED_ON = {"spark.conf", "assignor.conf"}
"""What has no value of its own: each setting below it has."""


def test_every_setting_is_told_with_value_default_unit_meaning_and_source(
    run: Run,
) -> None:
    Path("node.toml").write_text("workers = 3\n")
    handed = ("--set", "spark.conf.spark.x=1", "--set", "assignor.conf.x=2")
    ended = run("config", "--config", "node.toml", *handed, "-o", "json")
    told = {each["key"]: each for each in json.loads(ended.out)}
    assert told.keys() == {*KEYS, "spark.conf.spark.x", "assignor.conf.x"} - HANDED_ON
    assert told["workers"] == {
        "key": "workers",
        "value": "3",
        "default": "2",
        "unit": "processes",
        "allowed": "a whole number, from 0 to 1000",
        "meaning": "How many workers `fairlead up` runs and keeps running.",
        "kafka": "",
        "source": "file node.toml",
    }
    assert told["session.timeout.ms"] == {
        "key": "session.timeout.ms",
        "value": "10000",
        "default": "10000",
        "unit": "ms",
        "allowed": "a whole number of milliseconds, from 1 to 2147483647",
        "meaning": "A worker that is silent for this time loses its work to others."
        " With a log.store other than lmdb: 15000.",
        "kafka": "session.timeout.ms",
        "source": "default",
    }
    assert told["spark.conf.spark.x"]["value"] == "1"
    assert (told["assignor.conf.x"]["value"], told["assignor.conf.x"]["source"]) == (
        "2",
        "the command line",
    )


def test_the_table_fits_the_terminal_and_names_every_setting_twice(run: Run) -> None:
    ended = run("config", "--data-dir", "here")
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 100
    values, meanings = ended.out.split("\n\n")
    lines = [each for each in values.splitlines()[1:] if not each.startswith(" ")]  # else folded
    assert [each.split()[0] for each in lines] == [key for key in KEYS if key not in HANDED_ON]
    width = max(len(key) for key in KEYS) + 2
    assert f"{'data.dir':{width}}here " in values
    assert "The group that the workers join. Default: connect." in " ".join(meanings.split())


@pytest.mark.parametrize(
    "secret",
    [
        "spark.conf.spark.hadoop.fs.s3a.secret.key=hunter2",
        "assignor.conf.db.password=hunter2",
        "producer.sasl.jaas.config=org.example.Login required password=hunter2;",
        "config.providers.vault.param.uri=https://ann:hunter2@vault/",
    ],
)
def test_secrets_among_the_settings_of_others_are_not_shown(run: Run, secret: str) -> None:
    for output in ("table", "json", "yaml"):
        ended = run("config", "--set", secret, "-o", output)
        assert (ended.code, "hunter2" in ended.out, "********" in ended.out) == (0, False, True)


def test_a_configuration_that_is_refused_is_a_misuse_with_a_line_for_each_problem(
    run: Run,
) -> None:
    assert run("config", "--set", "workerz=1", "--set", "engine") == (
        2,
        "",
        "fairlead: unknown setting 'workerz' (from the command line): did you mean workers?\n"
        "fairlead: 'engine' (from the command line) is not of the form key=value\n",
    )


def test_the_environment_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_WORKERS", "7")
    told = {each["key"]: each for each in json.loads(run("config", "-o", "json").out)}
    assert (told["workers"]["value"], told["workers"]["source"]) == (
        "7",
        "environment variable FAIRLEAD_WORKERS",
    )


def test_what_a_connect_workers_file_has_for_connect_alone_is_told_in_one_list(run: Run) -> None:
    Path("c.properties").write_text(
        "bootstrap.servers=a:9092\nworkers=3\nplugin.discovery=service_load\n"
    )
    ended = run("config", "--config", "c.properties", "-o", "json")
    assert (ended.code, ended.err) == (
        0,
        "fairlead: of c.properties, these keys have no meaning here: plugin.discovery\n"
        "fairlead: instead of plugin.discovery: a plugin is scanned once, when it is added or has"
        " changed\n",
    )
    assert {each["key"]: each["value"] for each in json.loads(ended.out)}["workers"] == "3"


def test_the_settings_of_a_group_are_shown_set_and_reset(run: Run, cluster: Cluster) -> None:
    own = {"consumer.session.timeout.ms": "60000"}
    path, at = "/groups/billing/config", ("--group", "billing", "--url", cluster.url)
    cluster.answer("GET", path, own)
    cluster.answer("PATCH", path, {})
    assert run("group-config", *at, "-o", "json") == (0, json.dumps(own, indent=2) + "\n", "")
    changes = ("group.max.size=7", "--reset", "consumer.session.timeout.ms")
    assert run("group-config", *changes, *at) == (0, "none: all are the node's\n", "")
    sent = {"group.max.size": "7", "consumer.session.timeout.ms": None}
    assert cluster.asked == [Asked("GET", path, None), Asked("PATCH", path, sent)]
    ended = run("group-config", "group.max.size", *at)
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        "fairlead: 'group.max.size' is no change: write KEY=VALUE, or --reset KEY",
    )
