"""A connector whose name has offsets goes on where the earlier one stopped, and it is known."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.commits import Offset
from fairlead.events.entries.codec import encode
from fairlead_tests.coordination.driver import CoordinatorDriver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoordinatorDriver]:
    driver = CoordinatorDriver.at(tmp_path)
    yield driver
    driver.close()


def commit(driver: CoordinatorDriver, connector: str, *files: str) -> None:
    entries = [encode(Offset(connector, {"path": file}, {"size": 1})) for file in files]
    driver.offsets.append(driver.offsets.end, entries, 0)


def test_a_connector_knows_how_many_offsets_an_earlier_one_of_its_name_left(
    driver: CoordinatorDriver,
) -> None:
    driver.put("a")
    commit(driver, "a", "1.csv", "2.csv", "3.csv")
    commit(driver, "ab", "1.csv")
    assert driver.group.connectors["a"].offsets_before == 0  # they are its own
    driver.send(DeleteConnector("connect", "a"))
    driver.passes(1)
    assert "a" not in driver.group.connectors

    driver.put("a")
    assert driver.group.connectors["a"].offsets_before == 3
    commit(driver, "a", "4.csv")
    driver.send(PutConnector("connect", "a", {"name": "a", "tasks.max": "2"}))
    driver.open()
    assert driver.group.connectors["a"].offsets_before == 3
    driver.put("b")
    assert driver.group.connectors["b"].offsets_before == 0
