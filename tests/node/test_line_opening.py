"""The line of a node to owners: what keeps it from being opened ends nothing, and is tried on."""
# pyright: basic

import logging
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.cluster.kafka_security import NODES_UNSET, KafkaSecurity
from fairlead.runtime.node.door.actor import Door
from fairlead.runtime.node.door.line import OwnerLine
from fairlead.runtime.node.door.line_opening import LineOpening
from fairlead_tests.certificates import Authority

HOUR = timedelta(hours=1)
OWNER = HostPort("127.0.0.1", 9)


@pytest.mark.parametrize("security", [None, KafkaSecurity()], ids=["no listener", "no principal"])
def test_a_node_that_is_set_up_to_be_alone_has_no_line(
    security: KafkaSecurity | None, tmp_path: Path
) -> None:
    lines = LineOpening(security, tmp_path)
    assert (lines.open(), lines.flaw) == (None, NODES_UNSET)


@pytest.mark.parametrize("is_moved", [False, True], ids=["expired", "moved"])
def test_a_certificate_that_is_no_good_is_told_once_and_tried_until_it_is(
    is_moved: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, own = Authority(), tmp_path / "node.pem"
    if not is_moved:
        authority.issue("node", ends=-HOUR).write(own)
    tls = {
        "kafka.ssl.keystore.location": str(own),
        "kafka.ssl.truststore.location": str(authority.write(tmp_path / "ca.pem")),
    }
    security = KafkaSecurity(tls=tls, nodes=("User:CN=node",))
    lines = LineOpening(security, tmp_path)
    door = cast("Any", SimpleNamespace(lines=lines, line=lines.open(), owner_place=OWNER))
    with caplog.at_level(logging.WARNING):
        Door.retry_line(door)
        Door.retry_line(door)
    assert door.line is None
    assert str(own) in lines.flaw
    lines_told = [each.message for each in caplog.records]
    assert lines_told == [f"this node cannot send to others, and tries again: {lines.flaw}"]
    authority.issue("node").write(own)
    Door.retry_line(door)
    opened = cast("OwnerLine", door.line)
    Door.retry_line(door)
    assert (door.line is opened, lines.flaw) == (True, "")
    opened.close()
