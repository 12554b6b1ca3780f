"""Which change of a config starts a task again."""

from dataclasses import replace

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.node.worker.core.starts import core_of
from fairlead.runtime.pipeline.spi.keys.common import RESTART_BUDGET

CONNECTOR = {"connector.class": "C", "key.converter": "J", "topic": "t"}
OWN = {"topic": "t"}
LAUNCH = Launch(Resource("c", 0), Token(1, 1), CONNECTOR, OWN)


def _changed(launch: Launch, **changes: str) -> bool:
    given = {key.replace("_", "."): value for key, value in changes.items()}
    after = replace(launch, connector_config={**launch.connector_config, **given})
    return core_of(after) != core_of(launch)


def test_a_task_of_connect_starts_again_for_each_key_that_its_own_config_does_not_repeat() -> None:
    task = replace(LAUNCH, config={**OWN, "task.class": "T"})
    assert _changed(task, key_converter="S")
    assert _changed(task, errors_tolerance="all")
    # It starts again with its new task config.
    assert not _changed(task, topic="u")


def test_a_task_of_fairlead_starts_again_for_the_keys_of_its_runner() -> None:
    assert _changed(LAUNCH, **{RESTART_BUDGET: "7"})
    assert not _changed(LAUNCH, key_converter="S")


def test_a_task_of_connect_pauses_in_its_place_and_others_end() -> None:
    ours, task = LAUNCH, replace(LAUNCH, config={**OWN, "task.class": "T"})

    def ends(launch: Launch, state: RunState) -> bool:
        return core_of(replace(launch, target_state=state)) != core_of(launch)

    assert not ends(task, RunState.PAUSED)
    assert ends(task, RunState.STOPPED)
    assert ends(ours, RunState.PAUSED)
    assert ends(replace(task, resource=Resource("c")), RunState.PAUSED), "a connector"
