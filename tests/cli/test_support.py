"""`version`, `cluster-info` and `support-bundle`: who asks, who answers, and what helps others."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Cluster, Run

import fairlead
from fairlead.runtime.config.references.secret_patterns import redact

SECRET = "hunter2hunter2"
NAMES = {
    *("client.json", "settings.json", "doctor.json", "missing.txt", "metrics.txt", "root.json"),
    *("status.json", "health.json", "workers.json", "assignors.json", "groups.json"),
    *("connectors.json", "plugins.json", "groups/connect/group.json"),
}


def test_a_version_is_of_client_and_server_and_says_what_chose_it(
    run: Run, cluster: Cluster
) -> None:
    own = run("version", "--client")
    assert (own.code, own.out.splitlines()[0]) == (0, f"Client:  {fairlead.__version__}")
    both = run("version", "--url", cluster.url)
    assert both.out.splitlines()[2:] == [
        "Server:   0.1.0",
        "REST:     of Kafka Connect 4.3.0",
        f"Cluster:  abc at {cluster.url} (--url)",
    ]
    told = json.loads(run("version", "-o", "json", "--url", cluster.url).out)
    assert (told["client"], told["origin"]) == (fairlead.__version__, "--url")
    away = run("version", "--url", "http://127.0.0.1:9")
    assert (away.code, away.out) == (3, own.out)


def test_the_cluster_is_shown_with_what_it_offers(run: Run, cluster: Cluster) -> None:
    ended = run("cluster-info", "--url", cluster.url, "-o", "json")
    found = json.loads(ended.out)
    assert (found["cluster_id"], found["groups"], found["workers"], found["connectors"]) == (
        "abc",
        1,
        3,
        1,
    )
    assert found["metrics"] == f"{cluster.url}/metrics"


def files_in(path: str) -> dict[str, str]:
    with tarfile.open(path) as archive:
        members = [each for each in archive.getmembers() if each.isfile()]
        return {
            each.name.partition("/")[2]: opened.read().decode()
            for each in members
            if (opened := archive.extractfile(each))
        }


def plant_secrets(cluster: Cluster, folder: Path) -> None:
    """Put a secret wherever one may be: logs, settings, keys, answers of the cluster."""
    (folder / "logs").mkdir(parents=True)
    lines = (
        f"connects to postgresql://ann:{SECRET}@db/x",
        f"Authorization: Bearer {SECRET}",
        f'{{"message": "config", "sink.connection.password": "{SECRET}"}}',
        f"password={SECRET}, then goes on",
        "a line that stays",
    )
    (folder / "logs" / "actors.log").write_text("\n".join(lines))
    (folder / "run").mkdir()
    for name in ("key", "users.json", "rest-users.json"):
        (folder / "run" / name).write_text(SECRET)
    Path("node.toml").write_text(
        f'data.dir = "{folder}"\nspark.conf."spark.hadoop.fs.s3a.secret.key" = "{SECRET}"\n'
    )
    cluster.answer("GET", "/metrics", f"up 1\n# token={SECRET}\n".encode())
    cluster.answer("GET", "/admin/loggers", {"root": {"level": f"api_key: {SECRET}"}})


def test_a_bundle_has_what_helps_and_no_secret(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    plant_secrets(cluster, folder)
    (folder / "run" / "node.json").write_text(json.dumps({"rest": cluster.url}))
    ended = run("support-bundle", "--config", "node.toml", "-f", "b.tar.gz")
    assert (ended.code, ended.err) == (0, "")
    assert Path("b.tar.gz").stat().st_mode & 0o777 == 0o600
    files = files_in("b.tar.gz")
    assert NAMES - files.keys() == set()
    assert [name for name, text in files.items() if SECRET in text] == []
    assert "a line that stays" in files["logs/actors.log"]
    assert json.loads(files["connectors.json"]).keys() == {"flights"}
    settings: list[dict[str, Any]] = json.loads(files["settings.json"])
    assert [each["value"] for each in settings if each["key"] == "data.dir"] == [str(folder)]


def test_a_bundle_of_a_cluster_elsewhere_has_its_log_lines(run: Run, cluster: Cluster) -> None:
    entries = [{"file": "rest.log", "text": f"a line\n  password={SECRET}"}]
    page = {"entries": entries, "is_cut": False, "next": ""}
    cluster.answer("GET", "/logs?tail=10000", page)
    assert run("support-bundle", "--url", cluster.url, "-f", "b.tar.gz").code == 0
    logs = files_in("b.tar.gz")["logs/node.log"]
    assert logs == '[rest.log] a line\n  password="********"\n'


def test_a_bundle_of_a_cluster_that_is_down_has_the_rest(run: Run, tmp_path: Path) -> None:
    logs = tmp_path / "data" / "logs"
    logs.mkdir(parents=True)
    (logs / "rest.log").write_text("x" * 10 + "\n" + "the end\n" * 200_000)
    ended = run("support-bundle", "--data-dir", "data", "-f", "b.tar.gz")
    assert ended.code == 0
    files = files_in("b.tar.gz")
    assert "all answers of the cluster: no cluster answers" in files["missing.txt"]
    assert files["logs/rest.log"].count("the end\n") == (1 << 20) // 8 - 1
    again = run("support-bundle", "--data-dir", "data", "-f", "b.tar.gz")
    assert again == (1, "", "fairlead: b.tar.gz cannot be written: File exists\n")


def test_of_another_cluster_no_file_of_this_machine_is_taken(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    plant_secrets(cluster, tmp_path / "fairlead-data")
    assert run("support-bundle", "--url", cluster.url, "-f", "b.tar.gz").code == 0
    files = files_in("b.tar.gz")
    assert [name for name in files if name.startswith("logs/")] == []
    assert [name for name, text in files.items() if SECRET in text] == []


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ('{"token": {"epoch": 3}}', '{"token": {"epoch": 3}}'),
        ('"password": "x y"', '"password": "********"'),
        ('\\"password\\": \\"x y\\"', '\\"password\\": "********"'),
        ("ssl.key.password=abc", 'ssl.key.password="********"'),
        ("fl_0123456789abcdefgh", "********"),
        ("-----BEGIN PRIVATE KEY-----\nabc", "********"),
        ("http://h/x@y", "http://h/x@y"),
        ("token" * 50_000, "token" * 50_000),  # which takes minutes if each looks to the end
    ],
    ids=range(8),
)
def test_what_looks_like_a_secret_is_hidden(text: str, redacted: str) -> None:
    assert redact(text) == redacted
