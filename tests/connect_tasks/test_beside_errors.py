"""What a real worker of Connect does with records that it cannot convert, and what a node does.

The same config is given to both, and the same must be seen: `errors.*`, and dead letters.
"""
# pyright: basic

import re
from typing import Any

import pytest

from fairlead_tests.plugins.beside import FAILED, RUNNING, Beside, Side
from fairlead_tests.plugins.connect_node import ONE_REPLICA, until
from fairlead_tests.plugins.scripted_plugin import FLAKY, SOURCE

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]

JSON_SINK = {
    "connector.class": "FileStreamSink",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
RECORDS = ('{"n": 1}', "no JSON", '{"n": 2}')
STACK = "__connect.errors.exception.stacktrace"


def sink(side: Side, topic: str, **more: str) -> dict[str, str]:
    """Make a topic with a record that is no JSON, and return the config of a sink of it."""
    side.topics.make(side.own(topic))
    side.topics.write(side.own(topic), RECORDS)
    own = {"topics": side.own(topic), "file": side.file(topic)}
    return {**JSON_SINK, **own, **{key.replace("_", "."): each for key, each in more.items()}}


def frames(trace: str) -> list[str]:
    """Return a stack trace without the numbers that a JVM gives to its own classes."""
    return [re.sub(r"\$\$Lambda\S*", "", line) for line in trace.splitlines()]


def test_dead_letters_have_the_same_bytes_and_headers(beside: Beside) -> None:
    def act(side: Side) -> tuple[Any, ...]:
        config = sink(
            side,
            "letters",
            errors_tolerance="all",
            errors_deadletterqueue_topic_name=side.own("letters-dead"),
            errors_deadletterqueue_topic_replication_factor="1",
            errors_deadletterqueue_context_headers_enable="true",
        )
        with side.having("letters", config):
            lines = side.lines("letters", 2)
            (letter,) = side.read("letters-dead", 1)
            headers = {key: side.plain(text.decode()) for key, text in letter.headers()}
            trace = frames(headers.pop(STACK))
            return lines, letter.key(), letter.value(), headers, trace

    lines, key, value, headers, trace = beside.both(act)
    assert (lines, key, value) == (["{n=1}", "{n=2}"], None, b"no JSON")
    prefix = "__connect.errors."
    assert headers == {
        f"{prefix}topic": "letters",
        f"{prefix}partition": "0",
        f"{prefix}offset": "1",
        f"{prefix}connector.name": "letters",
        f"{prefix}task.id": "0",
        f"{prefix}stage": "VALUE_CONVERTER",
        f"{prefix}class.name": JSON_SINK["value.converter"],
        f"{prefix}exception.class.name": "org.apache.kafka.connect.errors.DataException",
        f"{prefix}exception.message": headers[f"{prefix}exception.message"],
    }
    assert trace[0].startswith("org.apache.kafka.connect.errors.DataException: ")


def test_without_tolerance_the_task_fails_with_the_same_words(beside: Beside) -> None:
    def act(side: Side) -> list[str]:
        with side.having("intolerant", sink(side, "intolerant"), [FAILED]):
            return frames(side.trace("intolerant"))

    trace = beside.both(act)
    assert "Tolerance exceeded in error handler" in trace[0]
    assert any("org.apache.kafka.connect.errors.DataException" in each for each in trace)


def test_what_is_logged_of_a_record_that_is_passed_over_is_the_same(beside: Beside) -> None:
    def act(side: Side) -> tuple[list[str], str]:
        config = sink(
            side,
            "logged",
            errors_tolerance="all",
            errors_log_enable="true",
            errors_log_include_messages="true",
        )
        start = f"Error encountered in task {side.own('logged')}-0."
        with side.having("logged", config):
            lines = side.lines("logged", 2)
            until(lambda: start in side.logs(), f"{side.name} logs the error")
        line = next(each for each in side.logs().splitlines() if start in each)
        told = line[line.index(start) :].partition("}.")[0]
        return lines, re.sub(r"timestamp=\d+", "timestamp=…", side.plain(told))

    lines, told = beside.both(act)
    assert lines == ["{n=1}", "{n=2}"]
    assert told == (
        "Error encountered in task logged-0. Executing stage 'VALUE_CONVERTER' with class"
        " 'org.apache.kafka.connect.json.JsonConverter', where consumed record is {topic='logged',"
        " partition=0, offset=1, timestamp=…, timestampType=CreateTime"
    )


@pytest.mark.parametrize(
    ("retries", "values"),
    [("-1", ["word after 4"]), ("0", [])],
    ids=["without-end", "none"],
)
def test_an_error_that_may_pass_is_tried_again_as_long_as_the_config_says(
    beside: Beside, retries: str, values: list[str]
) -> None:
    name = f"retried{retries}"

    def act(side: Side) -> tuple[list[str], list[str]]:
        config = {
            "connector.class": SOURCE,
            "topic": side.own(name),
            "script": "word",
            "transforms": "flaky",
            "transforms.flaky.type": FLAKY,
            "transforms.flaky.times": "3",
            "errors.retry.timeout": retries,
            "errors.retry.delay.max.ms": "400",
            **ONE_REPLICA,
        }
        with side.having(name, config, [RUNNING if values else FAILED]):
            seen = side.values(name, len(values)) if values else []
            trace = "" if values else side.trace(name)
            return seen, re.findall("RetriableException: try .", trace)

    assert beside.both(act) == (values, [] if values else ["RetriableException: try 1"])
