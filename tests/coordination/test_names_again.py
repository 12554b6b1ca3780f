"""A connector whose name has offsets goes on where the earlier one stopped, and it is known."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.actors.messages.work import DeleteConnector, PutConnector
from fairlead.events.entries.codec import encode
from fairlead.events.records import Offset
from fairlead_tests.coordination.office import Office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office.at(tmp_path)
    yield office
    office.close()


def commit(office: Office, connector: str, *files: str) -> None:
    entries = [encode(Offset(connector, {"path": file}, {"size": 1})) for file in files]
    office.offsets.append(office.offsets.end, entries, 0)


def test_a_connector_knows_how_many_offsets_an_earlier_one_of_its_name_left(
    office: Office,
) -> None:
    office.put("a")
    commit(office, "a", "1.csv", "2.csv", "3.csv")
    commit(office, "ab", "1.csv")
    assert office.group.connectors["a"].offsets_before == 0  # they are its own
    office.send(DeleteConnector("connect", "a"))
    office.passes(1)
    assert "a" not in office.group.connectors

    office.put("a")
    assert office.group.connectors["a"].offsets_before == 3
    commit(office, "a", "4.csv")
    office.send(PutConnector("connect", "a", {"name": "a", "tasks.max": "2"}))
    office.open()
    assert office.group.connectors["a"].offsets_before == 3
    office.put("b")
    assert office.group.connectors["b"].offsets_before == 0
