"""What the coordinator and the members go by is what was configured."""

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.worker.instructions import Timing
from fairlead.runtime.config.load import load_config


def test_defaults_are_those_of_the_protocol() -> None:
    config = load_config(None, {}, ())
    assert config.timing() == Timing()
    assert config.settings() == GroupSettings(max_size=(1 << 31) - 1)


def test_what_is_configured_reaches_both_sides() -> None:
    overrides = (
        "session.timeout.ms=6000",
        "heartbeat.interval.ms=500",
        "rebalance.timeout.ms=7000",
        "fence.margin.ms=800",
        "scheduled.rebalance.max.delay.ms=0",
        "scheduled.rebalance.leave.delay.ms=5",
        "group.max.size=9",
        "assignment.interval.ms=50",
        "member.request.rate=7",
        "group.initial.rebalance.delay.ms=8",
        "connect.initial.rebalance.delay.ms=9",
        "group.min.session.timeout.ms=10",
        "group.max.session.timeout.ms=11",
    )
    config = load_config(None, {}, overrides)
    assert config.timing() == Timing(500, 6_000, 7_000, 800)
    assert config.settings() == GroupSettings(
        *(6_000, 500, 0, 5, 9, 50, 7, 800),
        initial_delay_ms=8,
        connect_initial_delay_ms=9,
        least_classic_session_ms=10,
        longest_classic_session_ms=11,
    )
