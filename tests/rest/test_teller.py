"""What happens to a group is told once, also over restarts of the process that tells it."""

import errno
import json
from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.orders import PutConnector
from fairlead.projections.watch import lines
from fairlead.projections.watch.lines import EventLines
from fairlead.runtime.interfaces.rest.reading import changes as module
from fairlead.runtime.interfaces.rest.reading.changes import LogChanges
from fairlead.runtime.interfaces.rest.watch.teller import FILE, Teller
from fairlead_tests.cluster.node import eventually

CONFIG = {"connector.class": "Locked", "password": "hunter-2"}


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [each.getMessage() for each in caplog.records if each.name == lines.__name__]
    caplog.clear()
    return [each for each in found if each.startswith("connector ")]


def telling(api: RestApi) -> LogChanges:
    """Changes that a new teller hears of."""
    changes = LogChanges(api.service.logs)
    changes.subscribe(Teller(api.data_dir).tell)
    return changes


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", lines.__name__)


def test_a_process_that_is_started_again_goes_on_where_the_last_one_ended(
    api: RestApi, caplog: pytest.LogCaptureFixture
) -> None:
    api.client.put("/connectors/a/config", json=CONFIG)
    telling(api).look()
    assert told(caplog) == ["connector a was created by rest 127.0.0.1: Locked"]
    api.client.put("/connectors/b/config", json=CONFIG)
    api.service.logs.close()  # as the process does that ends; they are opened again below
    again = telling(api)
    again.look()
    again.look()
    assert told(caplog) == ["connector b was created by rest 127.0.0.1: Locked"]
    at = json.loads((api.data_dir / FILE).read_bytes())["connect"]
    with api.service.logs.reading("connect") as found:
        assert at == found.group.end
    assert "hunter" not in caplog.text


def test_a_name_makes_no_other_line(api: RestApi, caplog: pytest.LogCaptureFixture) -> None:
    api.group.ask("command", PutConnector("connect", "a\nb", {"connector.class": "x.Y"}))
    telling(api).look()
    lines_of = [each.getMessage() for each in caplog.records if each.name == lines.__name__]
    assert "'connector a\\nb was created: Y'" in lines_of


def test_a_mistake_in_a_line_costs_what_was_new_and_no_more(
    api: RestApi, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("a mistake")

    teller = telling(api)
    with monkeypatch.context() as patch:
        patch.setattr(EventLines, "apply", fail)
        api.client.put("/connectors/a/config", json=CONFIG)
        teller.look()
    assert "what happened in group connect is not told from entry 0 to" in caplog.text
    caplog.clear()
    api.client.put("/connectors/b/config", json=CONFIG)
    teller.look()
    assert told(caplog) == ["connector b was created by rest 127.0.0.1: Locked"]


def test_a_folder_that_cannot_be_listed_for_a_while_is_no_end_of_telling(
    api: RestApi, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_of = api.service.logs.group_ids
    failures = [OSError(errno.EMFILE, "Too many open files"), ValueError("a mistake")]

    def listed() -> list[str]:
        if failures:
            raise failures.pop(0)
        return told_of()

    monkeypatch.setattr(api.service.logs, "group_ids", listed)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    api.client.put("/connectors/a/config", json=CONFIG)
    teller = telling(api)
    teller.start()
    line = "connector a was created by rest 127.0.0.1: Locked"
    eventually(lambda: line in caplog.messages, "the line is told")
    teller.stop()
    assert [each for each in caplog.messages if "for now" in each] == [
        "what happens is not told for now: [Errno 24] Too many open files; it is tried again",
        "what happens is not told for now; it is tried again",
    ]
