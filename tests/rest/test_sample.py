"""`POST /sample`: ten rows as a config would have them read and transformed; nothing is changed."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from rest.conftest import KEY, RestApi
from rest.test_reach import limited

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands import samples as commands
from fairlead.runtime.interfaces.rest.commands.samples import Samples
from fairlead.runtime.interfaces.rest.server.errors import ApiError
from fairlead.runtime.node.sampling.brief import SamplingNode
from fairlead.runtime.security.rights import Role
from fairlead_tests.postgres_server import wait_until
from fairlead_tests.rest.client import Client

CONFIG = {
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.header": "true",
    "source.min.age.ms": "0",
    "sink.format": "parquet",
}

NOTHING: Mapping[str, str] = {}


@pytest.fixture
def sampling(api: RestApi) -> Iterator[Client]:
    """The interface with a process that reads samples, which may read the folder `in` alone."""
    (api.data_dir / "in").mkdir()
    (api.data_dir / "node" / "run").mkdir(parents=True)
    descriptor = os.open(api.data_dir / "node" / "run" / "key", os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "wb") as key:
        key.write(KEY)
    paths = [str(api.data_dir / each) for each in ("in", "out")]
    node = SamplingNode(data_dir=str(api.data_dir / "node"), conf={}, paths=paths)
    samples = Samples(node)
    yield Client(make_app(replace(api.service, samples=samples)))
    samples.close()


def sample(
    client: Client, folder: Path, more: Mapping[str, str] = NOTHING
) -> tuple[int, dict[str, Any]]:
    paths = {"source.path": str(folder), "sink.path": str(folder.parent / "out")}
    config = {**CONFIG, **paths, **more}
    answer = client.post("/sample", json={"name": "flights", "config": config})
    return answer.status_code, answer.json()


def test_a_process_of_its_own_says_why_there_is_no_sample(sampling: Client, api: RestApi) -> None:
    before = api.client.get("/groups/connect/events").json()["next"]
    refused = {
        "in none of the folders of paths.allow": {"source.path": str(api.data_dir / "elsewhere")},
        "no file in": {},
        "SSL_KEY}": {"source.schema": "${env:SSL_KEY}"},
    }
    for why, more in refused.items():
        status, answer = sample(sampling, api.data_dir / "in", more)
        assert (status, why in answer["message"]) == (400, True), answer
    locked = {"name": "flights", "config": {"connector.class": "Locked"}}
    assert "Failed to find any class" in sampling.post("/sample", json=locked).json()["message"]
    assert api.client.get("/groups/connect/events").json()["next"] == before


def test_one_sample_is_read_at_a_time_and_one_that_takes_too_long_ends_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    monkeypatch.setattr(commands, "_COMMAND", ("sh", "-c", f"touch {begun}; exec sleep 60"))
    monkeypatch.setattr(commands, "TURN_SECONDS", 0)
    samples = Samples(SamplingNode(data_dir="", conf={}))
    with ThreadPoolExecutor() as threads:
        first = threads.submit(refusal, samples)
        wait_until(begun.exists)
        busy = "a sample for somebody else is being read: try again in a moment"
        assert refusal(samples) == busy
        samples.close()
        ended = "no sample was read: its process has ended (exit code -9); nothing was written"
        assert first.result() == ended
    late = "no sample was read: that takes longer than 0 s; nothing was written"
    assert refusal(Samples(SamplingNode(data_dir="", conf={}), seconds=0)) == late


def refusal(samples: Samples) -> str:
    with pytest.raises(ApiError) as refused:
        samples.read("flights", {})
    assert refused.value.status == HTTPStatus.SERVICE_UNAVAILABLE
    return refused.value.message


@pytest.mark.soak  # the JVM of the process takes seconds to start
@pytest.mark.spark
def test_a_process_of_its_own_reads_a_sample_and_the_next_one_at_once(
    sampling: Client, api: RestApi
) -> None:
    folder = api.data_dir / "in"
    (folder / "a.csv").write_text("id,name\n1,ann\n")
    upper = {"transforms": "u", "transforms.u.type": "sql"}
    upper["transforms.u.query"] = "SELECT upper(name) AS name FROM input"
    column = {"name": "name", "type": "string"}
    for _ in range(2):
        status, answer = sample(sampling, folder, upper)
        assert (status, answer["warnings"]) == (200, [])
        assert answer["before"] == {
            "columns": [{"name": "id", "type": "bigint"}, column],
            "rows": [["1", "ann"]],
        }
        assert answer["after"] == {"columns": [column], "rows": [["ANN"]]}
    assert not (api.data_dir / "out").exists()


def test_a_node_without_an_engine_and_a_config_with_errors_are_refused(api: RestApi) -> None:
    folder = api.data_dir / "in"
    status, told = sample(api.client, folder)
    assert (status, told["message"].partition(":")[0]) == (400, "no sample was read")
    assert "engine=noop" in told["message"]
    assert (
        "contains the following 1 error(s)"
        in sample(api.client, folder, {"source.header": "x"})[1]["message"]
    )
    operator = limited(Role.OPERATOR)(api)
    assert sample(operator, folder)[0] == 403
