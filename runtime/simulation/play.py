"""A plan played from its beginning to its end, and what came of it."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from .plan import Plan
from .rest import come_to_rest
from .troubles import calm, schedule
from .violation import Violation
from .world import World

IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # the folder in it goes with the simulation


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation did, and what it found: nothing, or `violation`.

    `steps` are the decisions of the group's coordinator and the records that it wrote.
    """

    plan: Plan
    violation: str
    story: tuple[str, ...]
    cluster_ms: int
    steps: int
    records: int
    commits: int
    moves: int
    restarts: int
    checks: int


def play(plan: Plan, *, is_told: bool = False, on_disk: bool = False) -> Outcome:
    """Let everything happen that the plan has in store; any error on the way is a violation.

    A story that is told is slower; with a log on disk it is slower still.
    """
    if not on_disk:
        return _play(World(plan, is_told=is_told))
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        return _play(World(plan, is_told=is_told, folder=Path(folder) / "control"))


def _play(world: World) -> Outcome:
    plan, violation = world.plan, ""
    try:
        schedule(world)
        world.clock.run(plan.end_ms)
        calm(world)
        come_to_rest(world)
    except Violation as found:
        violation = str(found)
    except Exception as error:  # noqa: BLE001  # a rule that raises is broken as well
        violation = f"{type(error).__name__}: {error}"
    finally:
        world.books.close()
    if violation:
        world.story.tell("VIOLATION {}", violation)
    return _outcome(world, violation)


def _outcome(world: World, violation: str) -> Outcome:
    records = world.books.control.end
    return Outcome(
        world.plan,
        violation,
        tuple(world.story.lines),
        world.clock.now_ms,
        world.process.decisions + records,
        records,
        world.books.progress.commits,
        world.floor.moves,
        world.process.restarts,
        world.books.checks.count,
    )
