"""A schedule played from its beginning to its end, and what came of it."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from .faults import calm, schedule_faults
from .schedule import Schedule
from .settle import come_to_rest
from .violation import Violation
from .world import World

IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # the folder in it goes with the simulation


@dataclass(frozen=True, slots=True)
class PlayResult:
    """What a simulation did, and what it found: nothing, or `violation`.

    `steps` are the decisions of the group's coordinator and the records that it wrote.
    """

    schedule: Schedule
    violation: str
    story: tuple[str, ...]
    cluster_ms: int
    steps: int
    records: int
    commits: int
    moves: int
    restarts: int
    checks: int


def play(schedule: Schedule, *, is_told: bool = False, on_disk: bool = False) -> PlayResult:
    """Let everything happen that the schedule has in store; any error on the way is a violation.

    A story that is told is slower; with a log on disk it is slower still.
    """
    if not on_disk:
        return _play(World(schedule, is_told=is_told))
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        return _play(World(schedule, is_told=is_told, folder=Path(folder) / "control"))


def _play(world: World) -> PlayResult:
    schedule, violation = world.schedule, ""
    try:
        schedule_faults(world)
        world.clock.run(schedule.end_ms)
        calm(world)
        come_to_rest(world)
    except Violation as found:
        violation = str(found)
    except Exception as error:  # noqa: BLE001  # a rule that raises is broken as well
        violation = f"{type(error).__name__}: {error}"
    finally:
        world.durable_state.close()
    if violation:
        world.story.tell("VIOLATION {}", violation)
    return _outcome(world, violation)


def _outcome(world: World, violation: str) -> PlayResult:
    records = world.durable_state.control.end
    return PlayResult(
        world.schedule,
        violation,
        tuple(world.story.lines),
        world.clock.now_ms,
        world.process.decisions + records,
        records,
        world.durable_state.progress.commits,
        world.exclusivity.moves,
        world.process.restarts,
        world.durable_state.checks.count,
    )
