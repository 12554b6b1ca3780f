"""The REST process sends traces of what the logs tell, if it is asked to, and to nobody's harm."""

import logging
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest
from rest.conftest import KEY

from fairlead.events.model import Resource, RunState
from fairlead.projections.traces.spans import SpanContext, TraceSpan
from fairlead.runtime.config.references.rest_brief import RestBrief
from fairlead.runtime.config.references.trace_target import TraceTarget
from fairlead.runtime.interfaces.rest.reading.logs import NodeLogs
from fairlead.runtime.interfaces.rest.watch import span_queue
from fairlead.runtime.interfaces.rest.watch.span_queue import SpanQueue
from fairlead.runtime.interfaces.rest.watch.traces import FILE, TraceWatch
from fairlead_tests.cluster.node import eventually
from fairlead_tests.rest.collector import Collector, collecting
from fairlead_tests.rest.group_process import GroupProcess
from fairlead_tests.rest.process import TIMEOUT_SECONDS, running

pytestmark = pytest.mark.xdist_group("rest-process")  # what they run is imported once
SECRET = "hunter-2"
TASK = Resource("a", 0)


def brief(url: str, headers: str = "") -> RestBrief:
    return RestBrief(
        traces={
            "traces.endpoint": url,
            "traces.headers": headers,
            "traces.service.name": "pipelines",
        }
    )


@pytest.fixture
def lived(tmp_path: Path, group_process: GroupProcess) -> Iterator[tuple[Path, GroupProcess]]:
    """A data folder with a group in which two batches of one task were committed."""
    (tmp_path / "run").mkdir()
    key = tmp_path / "run" / "key"
    key.touch(0o600)
    key.write_bytes(KEY)
    with group_process.serving(tmp_path / "groups" / "connect") as group:
        group.ask("configure", "a a-0")
        group.ask("seat", "w1")
        for each in (Resource("a"), TASK):
            group.ask("report", each, RunState.RUNNING)
        for number in range(2):
            group.ask("pass_time", 1_000)
            group.ask("commit", TASK, number, 10, 9)
            group.ask("publish", TASK, number)
        yield tmp_path, group


def test_a_collector_that_is_away_holds_nothing_up_and_gets_all_once_it_is_there(
    lived: tuple[Path, GroupProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir, _ = lived
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("TOKEN", SECRET)
    log = data_dir / "logs" / "rest.log"
    with collecting() as collector:
        told = brief(collector.url, "Authorization=Bearer ${env:TOKEN}")
        collector.status = 503
        with running(data_dir, brief=told) as (process, client):
            eventually(lambda: "spans cannot be sent to" in log.read_text(), "it is told")
            assert 'trace_spans_total{outcome="sent"} 0.0' in client.get("/metrics").text
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert (log.read_text().count("traces.endpoint"), "Traceback" in log.read_text()) == (1, 0)
        collector.status = 200
        with running(data_dir, brief=told):
            eventually(lambda: len(collector.named("batch")) == 2, "both batches are sent")
        check_spans(collector)
        assert {each["authorization"] for each in collector.headers} == {f"Bearer {SECRET}"}
        assert {each["service.name"] for each in collector.resources} == {"pipelines"}
    written = [*collector.bodies, *(each.read_bytes() for each in (data_dir / "logs").iterdir())]
    assert not [each for each in written if SECRET.encode() in each]


def test_what_the_exporter_logs_is_kept_while_it_sends_alone() -> None:
    otlp = pytest.importorskip("fairlead.runtime.interfaces.rest.watch.otlp")
    with collecting() as collector:
        collector.status = 400
        sender = otlp.SpanSender(TraceTarget(collector.url, {}, "pipelines"), {})
        why = sender.send([])
        sender.close()
    logger = logging.getLogger("opentelemetry")
    assert "400" in why
    assert (logger.propagate, logger.handlers) == (True, [])


def check_spans(collector: Collector) -> None:
    (epoch,) = collector.named("epoch")
    assert (epoch.attributes["fairlead.epoch"], epoch.parent_id) == (1, "")
    handovers = collector.named("handover")
    assert {(each.trace_id, each.parent_id) for each in handovers} == {
        (epoch.trace_id, epoch.span_id)
    }
    assert [each.attributes.get("fairlead.task") for each in handovers] == [None, 0]
    batches = collector.named("batch")
    assert [each.attributes["fairlead.batch"] for each in batches] == [0, 1]
    assert batches[0].attributes["fairlead.rows.read"] == 10
    assert batches[0].links == [epoch.span_id]
    assert batches[0].trace_id != epoch.trace_id


def test_what_was_sent_is_not_sent_again_by_the_next_process(
    lived: tuple[Path, GroupProcess],
) -> None:
    data_dir, group = lived
    sent: list[TraceSpan] = []

    def take(spans: Sequence[TraceSpan]) -> str:
        sent.extend(spans)
        return ""

    def look() -> list[tuple[str, object]]:
        """Look as a new process; return the names of what was sent, and the numbers of batches."""
        sent.clear()
        logs = NodeLogs(data_dir)
        TraceWatch(logs, "a-cluster", SpanQueue(Mock(send=take), "http://c"), data_dir).look(0)
        logs.close()
        return [(each.name, each.attributes.get("fairlead.batch")) for each in sent]

    assert sorted(look(), key=str) == [
        ("batch", 0),
        ("batch", 1),
        ("epoch", None),
        ("handover", None),
        ("handover", None),
    ]
    assert look() == []
    group.ask("commit", TASK, 2, 10, 9)
    assert look() == [], "it is not published"
    group.ask("publish", TASK, 2)
    assert look() == [("batch", 2)]
    (data_dir / FILE).write_text("{")
    assert len(look()) == 6


def test_the_oldest_spans_are_dropped_and_counted_while_a_collector_is_away(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", span_queue.__name__)
    monkeypatch.setattr(span_queue, "KEPT_MAX", 3)
    monkeypatch.setattr(span_queue, "RETRY_SECONDS", 0)
    sender = Mock()
    sender.send.side_effect = ["refused", "refused", ""]
    queue = SpanQueue(sender, "http://c:4318/v1/traces")
    for number in range(5):
        queue.add([TraceSpan("batch", SpanContext.of(number), number, number, {})])
    for _ in range(3):
        queue.send()
    assert [span.start_ms for span in sender.send.call_args.args[0]] == [2, 3, 4]
    assert (queue.is_empty, queue.counts()) == (True, {"sent": 3, "dropped": 2})
    assert caplog.messages == [
        "traces.endpoint: spans cannot be sent to http://c:4318/v1/traces: refused; nothing else"
        " waits for that, and it is tried again every 0 s with the latest 3 spans",
        "traces.endpoint: spans are sent to http://c:4318/v1/traces again; 2 were dropped"
        " meanwhile",
    ]
