"""What a plugin's ends may not be, and how long its stop may take, without a host."""

import pytest

from fairlead.events.model import Resource
from fairlead.runtime.interfaces.replies.connectors import ConfigInfos
from fairlead.runtime.interfaces.rest.validation.connect_configs import refuse_ends
from fairlead.runtime.pipeline.plugins.batches import host_run
from fairlead.runtime.pipeline.plugins.host import OpenQuestion
from fairlead.runtime.pipeline.plugins.running.runs import HostedRun

VALID = ConfigInfos("A", 0, [], [])


@pytest.mark.parametrize(
    ("value", "count"), [("${vault:a:b}", 1), ("${env:A}", 0), ("plain", 0), (None, 0)]
)
def test_a_sink_refers_to_no_provider_of_the_plugins_jvm(value: str | None, count: int) -> None:
    config = {"sink.connection.password": value, "database.password": "${vault:a:c}"}
    infos = refuse_ends(VALID, "source", config, ["vault"])
    told = [each.value.name for each in infos.configs if each.value]
    assert (infos.error_count, told) == (count, ["sink.connection.password"] * count)


class SlowStop(OpenQuestion):
    """A stop that is done at some second of a clock, which waiting moves on."""

    def __init__(self, done_at: float) -> None:
        self.now, self._done_at = 0.0, done_at

    @property
    def is_done(self) -> bool:
        return self.now >= self._done_at

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def where(self, seconds: float = 0.0) -> str:
        return f"after {seconds:g} s"

    def result(self, _: float) -> str:
        return ""


@pytest.mark.parametrize(("done_at", "is_replaced"), [(20.0, False), (22.0, True)])
def test_a_stop_may_take_as_long_as_the_node_says_and_a_moment(
    done_at: float, *, is_replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, reasons = SlowStop(done_at), list[str]()
    monkeypatch.setattr("time.monotonic", lambda: question.now)
    monkeypatch.setattr(HostedRun, "put", lambda *_, **__: question)
    monkeypatch.setattr(HostedRun, "replace_host", lambda _, why: reasons.append(why))
    run = HostedRun(Resource("a", 0), lambda: True, grace_s=20.0)
    host_run.stop(run, SlowStop(0.0), "stop task")
    assert bool(reasons) is is_replaced
