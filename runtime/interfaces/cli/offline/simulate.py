"""The command `simulate`: whole groups in virtual time, under random faults."""

import re
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated, Final

from ..adapters.parameters import Ended, Option
from ..output.printing import FAILED, FactList, Misused, Output, say, show
from ..requests.options import with_options

if TYPE_CHECKING:
    from ....simulation.campaign import CampaignResult
    from ....simulation.schedule import Size

RANGE: Final = re.compile(r"(\d{1,18})-(\d{1,18})")
NUMBERS: Final = re.compile(r"none|\d{1,9}(,\d{1,9})*")
HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The size of each simulation."""

    steps: Annotated[
        int,
        Option("--steps", metavar="N", min=0, max=100_000, help="The number of faults."),
    ] = 120
    workers: Annotated[
        int, Option("--workers", metavar="N", min=1, max=1_000, help="Workers at the start.")
    ] = 3
    connectors: Annotated[
        int,
        Option("--connectors", metavar="N", min=1, max=1_000, help="Connectors at the start."),
    ] = 2
    pace: Annotated[
        int,
        Option("--pace", metavar="MS", min=1, max=86_400_000, help="The time between two steps."),
    ] = 800
    only: Annotated[
        str | None,
        Option("--only", metavar="KIND,KIND", help="Which faults, such as lose,cut,crash."),
    ] = None
    crew: Annotated[
        str,
        Option(
            "--crew",
            metavar="KIND",
            help="The workers: connect, classic or mixed; or hosts, for several with one store.",
        ),
    ] = "connect"
    log: Annotated[bool, Option("--log", help="Use a real log on disk; slower.")] = False

    def size(self) -> "Size":
        """Return the same as a `Size` of the simulation."""
        from ....simulation.environment.kinds import Fault  # noqa: PLC0415
        from ....simulation.schedule import Crew, Size  # noqa: PLC0415  # --help needs no group

        named = self.only.upper().split(",") if self.only is not None else []
        if unknown := [name for name in named if name not in Fault.__members__]:
            known = ", ".join(kind.lower() for kind in Fault.__members__)
            raise Misused(f"--only knows nothing of {unknown[0].lower()!r}, only of: {known}")
        kinds = tuple(Fault[name] for name in named)
        crews = {each.value: each for each in Crew}
        if self.crew not in crews:
            raise Misused(f"--crew is one of {', '.join(crews)}, and not {self.crew!r}")
        size = self.steps, self.workers, self.connectors, self.pace
        return Size(*size, kinds, crews[self.crew])


@with_options(SimulationOptions)
def simulate(
    extent: SimulationOptions,
    seed: Annotated[int, Option("--seed", metavar="N", min=0, help="The seed to run.")] = 0,
    seeds: Annotated[
        str | None, Option("--seeds", metavar="A-B", help="Run seeds A to B, without B.")
    ] = None,
    minutes: Annotated[
        float | None,
        Option("--minutes", metavar="M", min=0, help="Run further seeds for this time."),
    ] = None,
    keep: Annotated[
        str | None,
        Option(
            "--keep", metavar="N,N", help="Run only these steps of one seed, and print the story."
        ),
    ] = None,
    output: Annotated[Output, Option("--output", "-o", help="The output format.")] = (Output.TABLE),
) -> None:
    """Simulate groups under faults, and check that no rule of the protocol is broken.

    If one is broken, the exit code is 1, and the shortest story that breaks it is printed.
    """
    from ....simulation import campaign  # noqa: PLC0415

    if keep is not None:
        result = campaign.replay(seed, extent.size(), _numbers(keep), on_disk=extent.log)
    else:
        which = _seeds(seed, seeds, is_endless=minutes is not None)
        go_on = _patience(minutes)
        result = campaign.search(which, extent.size(), go_on=go_on, on_disk=extent.log)
    _print(output, result)
    if result.last is not None and result.last.violation:
        raise Ended(FAILED)


def _numbers(keep: str) -> Collection[int]:
    if not NUMBERS.fullmatch(keep):
        raise Misused(f"--keep takes numbers as in 3,7,12, or none, and not {keep!r}")
    return set() if keep == "none" else {int(number) for number in keep.split(",")}


def _seeds(seed: int, seeds: str | None, *, is_endless: bool) -> Iterable[int]:
    if seeds is None:
        return count(seed) if is_endless else [seed]
    match = RANGE.fullmatch(seeds)
    if match is None or int(match[1]) >= int(match[2]):
        raise Misused(f"--seeds takes a range as in 0-100, and not {seeds!r}")
    return range(int(match[1]), int(match[2]))


def _patience(minutes: float | None) -> Callable[[], bool]:
    if minutes is None:
        return lambda: True
    until = time.monotonic() + minutes * 60
    return lambda: time.monotonic() < until


def _print(output: Output, result: "CampaignResult") -> None:
    """Print the story, the statistics, and the command that repeats the simulation."""
    from ....simulation.campaign import again  # noqa: PLC0415

    last = result.last
    story = list(last.story) if last else []
    violation = last.violation if last else ""
    command = again(last.schedule) if last and violation else ""
    if output is Output.TABLE:
        for line in story:
            say(line)
    hours = result.cluster_ms / HOUR_MS
    figures = {
        "steps": result.steps,
        "records": result.records,
        "commits": result.commits,
        "moves": result.moves,
        "restarts": result.restarts,
        "checks": result.checks,
    }
    whole: dict[str, object] = {"seeds": result.seeds, "clusterHours": round(hours, 4), **figures}
    whole |= {"violation": violation or None, "again": command or None, "story": story}
    pairs = [("seeds", str(result.seeds)), ("cluster time", f"{hours:.2f} h")]
    pairs += [(name, str(figure)) for name, figure in figures.items()]
    show(output, whole, [FactList([*pairs, ("violation", violation or "none")])])
    if output is Output.TABLE and command:
        say(command)
