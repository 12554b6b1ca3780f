"""The lines of a plugin host's log, sorted by connector."""

from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.connector_logs import ConnectorLogs

AT = "[2026-11-29 23:27:28,500]"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        pytest.param(f"{AT} INFO [a|task-0] begins (x.Y:1)", "connector-a.log", id="task"),
        pytest.param(f"{AT} WARN [a|worker] begins (x.Y:1)", "connector-a.log", id="connector"),
        pytest.param(f"{AT} INFO [a|task-12|offsets] commits", "connector-a.log", id="offsets"),
        pytest.param(f"{AT} INFO [a\tsink|task-0] begins", "connector-a.log", id="sink-of-two"),
        pytest.param(f"{AT} INFO [a b|c|task-0] begins", "connector-a%20b%7Cc.log", id="odd-name"),
        pytest.param(f"{AT} INFO [../a|task-0] begins", "connector-..%2Fa.log", id="path"),
        pytest.param(f"{AT} INFO [Producer clientId=p] sends", None, id="of-a-client"),
        pytest.param(f"{AT} INFO begins (x.Y:1)", None, id="of-nobody"),
        pytest.param('{"id": 1}', None, id="printed"),
    ],
)
def test_a_line_is_in_the_log_of_the_connector_that_it_names(line: str, name: str | None) -> None:
    found = ConnectorLogs(Path("/logs")).log_of(line)
    assert found == (name and Path("/logs", name))


def test_a_stack_trace_is_in_the_log_of_the_line_before_it() -> None:
    logs = ConnectorLogs(Path())
    lines = [
        f"{AT} ERROR [a|task-0] failed",
        "java.lang.IllegalStateException: no such luck",
        "\tat bad.Task.poll(Task.java:7)",
        "Caused by: java.io.IOException",
        "what a plugin prints",
        "\t... 7 more",
        f"{AT} INFO goes on",
        "\tat bad.Task.poll(Task.java:7)",
    ]
    own = Path("connector-a.log")
    assert [logs.log_of(each) for each in lines] == [own, own, own, own, None, own, None, None]
