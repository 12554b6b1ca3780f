"""What has changed of the topics of a group is told by the first name and the number of others."""

from unittest.mock import Mock

import pytest

from fairlead.actors.consumer.topics import _name_changed
from fairlead.events.records import Topic


@pytest.mark.parametrize(
    ("seen", "matched", "told"),
    [
        ({}, {}, ""),
        ({"b": 1}, {}, "b"),
        ({"b": 1, "a": 1}, {}, "a and 1 more"),
        ({"b": 1, "a": 1}, {"x.*": ["x1", "b"]}, "a and 2 more"),
        ({"unknown": 1}, {}, ""),
    ],
)
def test_topics_that_have_changed_are_told(
    seen: dict[str, int], matched: dict[str, list[str]], told: str
) -> None:
    group = Mock(topics=None, subscribers={"a", "b", "c"})
    topics = dict.fromkeys(seen, Mock(spec=Topic))
    assert _name_changed(group, Mock(topics=topics, matched=matched)) == told
