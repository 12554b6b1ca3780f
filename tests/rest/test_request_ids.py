"""Each request has an id, and so have the log lines of what it led to."""

import json
import logging
import re

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.commands import CommandReply, RequestedCommand
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import DeleteConnector
from fairlead.actors.shards.host_actor import log_command
from fairlead.actors.transport.log_format import JsonLine, TextLine, fields_of

OWN = re.compile(r"[0-9a-f]{16}")


def test_an_id_that_a_proxy_has_given_comes_back(api: RestApi) -> None:
    for path, code in (("/connectors", 200), ("/connectors/none", 404), ("/health/live", 200)):
        answer = api.client.get(path, headers={"x-request-id": "a1:b2/c-3"})
        assert (answer.status_code, answer.headers["x-request-id"]) == (code, "a1:b2/c-3")


FLAWED = (None, "", "x" * 129, "two words", "line\tbreak", "[epoch=7]", "%C3")


@pytest.mark.parametrize("sent", FLAWED)
def test_what_is_no_plain_id_is_replaced(api: RestApi, sent: str | None) -> None:
    headers = {} if sent is None else {"x-request-id": sent}
    answers = [api.client.get("/connectors", headers=headers) for _ in "ab"]
    ids = [each.headers["x-request-id"] for each in answers]
    assert all(OWN.fullmatch(each) for each in ids)
    assert len({*ids}) == 2


def test_the_lines_of_a_request_have_its_id(api: RestApi, caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(TextLine("%(message)s").format(record))
            assert json.loads(JsonLine().format(record))["request"] == "r-1"

    logger = logging.getLogger("fairlead.runtime.interfaces.rest")
    logger.addHandler(handler := Lines())
    try:
        with caplog.at_level(logging.INFO, logger.name):
            headers = {"x-request-id": "r-1"}
            api.client.put("/admin/loggers/ids.own", json={"level": "WARN"}, headers=headers)
    finally:
        logger.removeHandler(handler)
    assert [each.endswith("[request=r-1]") for each in told] == [True] * len(told)
    assert told


def test_the_actor_of_the_group_logs_a_command_with_the_id_of_its_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    command = DeleteConnector("connect", "flights", principal="rest 127.0.0.1 (ann)")
    with caplog.at_level(logging.INFO):
        log_command(RequestedCommand(command, "r-7"), CommandReply(Error.NONE, "", 12))
        refused = CommandReply(Error.UNKNOWN_CONNECTOR, "there is none", 12)
        log_command(RequestedCommand(command, "r-8"), refused)
    who = "DeleteConnector by 'rest 127.0.0.1 (ann)'"
    assert [(each.getMessage(), fields_of(each)) for each in caplog.records] == [
        (
            f"{who} is carried out, the log ends at 12",
            {"group": "connect", "connector": "flights", "request": "r-7"},
        ),
        (
            f"{who} is refused: UNKNOWN_CONNECTOR, the log ends at 12",
            {"group": "connect", "connector": "flights", "request": "r-8"},
        ),
    ]
