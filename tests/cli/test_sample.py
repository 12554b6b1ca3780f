"""`sample`: the rows that a node has read for configs in files."""

import json
from pathlib import Path

from cli.conftest import Cluster, Run

ROWS = {
    "before": {
        "columns": [{"name": "id", "type": "bigint"}, {"name": "at", "type": "date"}],
        "rows": [["1", "2026-01-01"], ["2", None]],
    },
    "after": {"columns": [{"name": "n", "type": "string"}], "rows": []},
    "warnings": ["1 bad rows were left out, such as: x"],
}


def test_a_sample_is_shown_before_and_after_the_transforms(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps({"name": "c", "config": {"a": 1}}))
    cluster.answer("POST", "/sample", ROWS)
    shown = run("sample", "-f", file, "--url", cluster.url)
    assert cluster.asked[-1].body == {"name": "c", "config": {"a": "1"}}
    assert shown.out.splitlines() == [
        "c, as it is read",
        "id (bigint)  at (date)",
        "1            2026-01-01",
        "2            -",
        "",
        "c, as it would be written",
        "no rows",
    ]
    assert shown.err == "fairlead: c: 1 bad rows were left out, such as: x\n"
    assert json.loads(run("sample", "-f", file, "-o", "json", "--url", cluster.url).out) == {
        "c": ROWS
    }
