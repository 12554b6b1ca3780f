"""What a real node tells of its work: why it waits, and never what its secrets are."""

import json
import os
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from fairlead.events.model import Resource, RunState
from fairlead_tests.chaos.crew import GROUP, Crew

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

ENV, FILE, SEALED = "En/v+S3cret_of_ours", "F1le S3cret/of & ours %", "Sea1ed=S3cret?"


def test_a_task_that_fails_over_secrets_leaves_them_in_no_reply_log_or_file(
    tmp_path: Path,
) -> None:
    secrets = tmp_path / "s.properties"
    secrets.write_text(f"password={FILE}\n")
    landing = tmp_path / "in"
    landing.mkdir()
    (landing / "1.csv").write_text("a\n1\n")
    crew = Crew(tmp_path, environ={**os.environ, "OURS": ENV})
    crew.up(workers=1)
    try:
        query = f"raise_error('no login for ${{env:OURS}} with ${{file:{secrets}:password}}')"
        config = {
            "connector.class": "SparkPipeline",
            "tasks.max": "1",
            "task.restart.budget": "1",
            "source.format": "csv",
            "source.path": str(landing),
            "source.option.password": SEALED,
            "sink.format": "json",
            "sink.path": str(tmp_path / "out"),
            "transforms": "t",
            "transforms.t.type": "select",
            "transforms.t.columns": f"a, {query} AS b",
        }
        crew.put("leaky", config)
        waiting = config | {"source.path": f"{tmp_path}/later", "source.schema": "a INT"}
        crew.put("waiting", waiting)

        def has_failed() -> bool:
            crew.look()
            status = crew.group.statuses.get(Resource("leaky", 0))
            return status is not None and status.state is RunState.FAILED

        crew.eventually(has_failed, "the task has failed")
        crew.eventually(lambda: "is not a folder (yet)" in told(crew, "waiting"), "it waits")
        assert f"no login for ${{env:OURS}} with ${{file:{secrets}:password}}" in told(
            crew, "leaky"
        )
        pages = [page(crew, path) for path in PAGES]
    finally:
        crew.down()
    kept = [file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file()]
    kept += [file.read_bytes() for file in tmp_path.glob("*.log")]
    for secret in (ENV, FILE, SEALED):
        for spelled in (secret, quote(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]):
            assert not any(spelled in each for each in pages)
            assert not any(spelled.encode() in each for each in kept)


PAGES = (
    "/connectors?expand=status&expand=info&expand=progress",
    "/connectors/leaky",
    "/connectors/leaky/config",
    "/connectors/leaky/status",
    "/connectors/leaky/tasks",
    "/connectors/leaky/tasks/0/status",
    "/groups",
    f"/groups/{GROUP}",
    f"/groups/{GROUP}/history",
    "/workers",
    "/metrics",
)


def page(crew: Crew, path: str) -> str:
    return httpx.get(crew.rest + path, timeout=30).text


def told(crew: Crew, connector: str) -> str:
    return page(crew, f"/connectors/{connector}/status")
