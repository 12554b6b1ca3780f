"""Print the table of runtime/simulation/MUTATIONS.md: each rule, how soon it is missed, and how.

PYTHONPATH=tests python -m fairlead_tests.simulation.tell_mutations [NAME ...]
"""

import sys

import pytest

from fairlead.runtime.simulation.campaign import PlayResult, search
from fairlead.runtime.simulation.schedule import Crew, Size
from fairlead_tests.simulation.rules import MUTATIONS, Mutation

SEEDS = 500
"""The number of seeds before a rule counts as not detected."""

TITLE = "| rule switched off | § | seeds needed | looked for in | what broke | shortest story |"


def row(mutation: Mutation) -> str:
    """Return a mutation's line of the table."""
    with pytest.MonkeyPatch.context() as patch:
        mutation.switch_off(patch)
        found = search(range(SEEDS), Size(only=mutation.only, crew=mutation.crew))
    last = found.last
    head = f"| {mutation.rule} (`{mutation.name}`) | {mutation.section} "
    if last is None or not last.violation:
        return f"{head}| not in {SEEDS} | | | {mutation.masked} |"
    broke = last.violation.splitlines()[0].partition("; what led there")[0][:90]
    return f"{head}| {found.seeds} | {mutation.seeds} | {broke} | {story(last)} |"


def story(outcome: PlayResult) -> str:
    """Return the faults that are needed for detection, in a line."""
    schedule = outcome.schedule
    faults = [" ".join(str(fault).split()) for fault in schedule.faults]
    only = ",".join(kind.name.lower() for kind in schedule.size.only)
    among = f" of only {only}" if only else ""
    size = schedule.size
    crew = f"{size.crew.value} " if size.crew is not Crew.CONNECT else ""
    cast = (
        f"seed {schedule.seed}{among}, {size.workers} {crew}workers, {size.connectors} connectors"
    )
    return f"{cast}: {'; '.join(faults) or 'nothing at all'}"


def main() -> None:
    """Print the lines of the mutations that are named, of all if none is."""
    print(TITLE, "|---|---|---|---|---|---|", sep="\n")
    for mutation in MUTATIONS:
        if not sys.argv[1:] or mutation.name in sys.argv[1:]:
            print(row(mutation), flush=True)


if __name__ == "__main__":
    main()
