"""That a member is fenced is in the log of its group, and no other answer is."""

import logging

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.actors.shards.host_actor import log_fence


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (Error.FENCED_MEMBER_EPOCH, ["w1 is fenced: too old"]),
        (Error.NONE, []),
        (Error.UNKNOWN_MEMBER_ID, []),
    ],
)
def test_a_fence_alone_is_told(
    caplog: pytest.LogCaptureFixture, error: Error, lines: list[str]
) -> None:
    with caplog.at_level(logging.WARNING):
        log_fence(HeartbeatReply(error, "w1", 1, message="too old"))
        log_fence("something else")
    assert [each.getMessage() for each in caplog.records] == lines
