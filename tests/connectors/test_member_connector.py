"""The class whose work members over Kafka's wire run: it demands a tag, and runs nothing here."""

import pytest

from fairlead.events.placement import is_of_members, most_tasks_in
from fairlead.runtime.pipeline.connectors.member_connector import MemberConnector
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.spi.config import ConfigInvalid

LINES = {
    "name": "lines",
    "connector.class": "MemberConnector",
    "placement.tags": "lines",
    "member.input": "/data/in",
}


def test_its_config_has_a_tag_and_keys_of_the_members_own() -> None:
    plugin = find_plugins().find("MemberConnector")
    assert (plugin.made_by, plugin.name) == (MemberConnector, "fairlead.MemberConnector")
    assert MemberConnector.validate(LINES).errors == {}
    assert MemberConnector.validate(LINES).remarks == ()
    untagged = {**LINES, "placement.tags": " "}
    assert MemberConnector.validate(untagged).errors.keys() == {"placement.tags"}
    assert MemberConnector.validate({**LINES, "tasks.max": "no"}).errors.keys() == {"tasks.max"}


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("MemberConnector", True),
        ("Member", True),
        ("fairlead.MemberConnector", True),
        ("SparkPipeline", False),
        ("", False),
    ],
)
def test_the_group_knows_it_by_each_of_its_names(name: str, is_so: bool) -> None:
    assert is_of_members({"connector.class": name}) is is_so


def test_the_group_reads_the_number_of_tasks() -> None:
    assert [most_tasks_in({"tasks.max": each}) for each in ("3", "no", "")] == [3, 1, 1]


def test_a_worker_of_the_node_refuses_to_run_it() -> None:
    connector = MemberConnector()
    for run in (connector.start, connector.pipeline):
        with pytest.raises(ConfigInvalid, match=r"run by members .* that have lines"):
            run(None, LINES)  # type: ignore[arg-type]
    assert connector.task_configs(3) == ()
