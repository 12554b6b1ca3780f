"""The command `examples`: the files of `deploy/`, which are installed with the program.

Pages name them by their places in a checkout, `deploy/systemd/fairlead.service`. If only
the program is installed, they are written to the same places below the current folder.
"""

import shutil
from pathlib import Path
from typing import Annotated, Final

from ..adapters.parameters import Argument, Option
from ..output.printing import Failed, Table, say, show_sections
from ..requests.several import pick

ROOT: Final = Path(__file__).parents[4] / "deploy"
CONTENTS: Final = {
    "flights.yaml": "a connector: CSV files, transformed with SQL, into parquet",
    "systemd": "a unit, its user, and its settings",
    "container": "a Containerfile, and the check of its health",
    "kubernetes": "manifests, a chart, and the resources of Prometheus' operator",
    "prometheus": "what to scrape, alert rules with their tests, and routes of Alertmanager",
    "grafana": "dashboards of all connectors, of one, and of a group",
    "sqlite": "a source and a sink of your own, with tests",
    "together": "an assignor of your own",
    "member": "a program that is a member of a group",
    "member-over-kafka": "a worker in Python and in Java, over Kafka's protocol",
    "notebook": "a notebook about a node",
}
"""What each file or folder of `deploy/` has."""


def examples(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[NAME...]",
            help="What to write. Default: list what there is.",
            complete=lambda _, word: [each for each in CONTENTS if each.startswith(word)],
        ),
    ] = None,
    *,
    to: Annotated[Path, Option("--to", metavar="DIR", help="The folder to write to.")] = Path(
        "deploy"
    ),
) -> None:
    """List the examples and the files for other programs that are installed, or write some.

    They get the places that pages name, such as deploy/systemd. What is there already stays.
    """
    if not names:
        show_sections([Table(("NAME", "WHAT IT IS"), [*CONTENTS.items()], rigid=True)])
        return
    for name in pick("example", names, [*CONTENTS], lambda each: [each]):
        write(ROOT / name, to / name)
        say(f"{to / name} written")


def write(source: Path, target: Path) -> None:
    """Copy a file or a folder to a place where nothing is; raises `Failed`."""
    if target.exists():
        raise Failed(f"{target} is there already, and stays as it is: choose another --to DIR")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    except OSError as error:
        raise Failed(f"{target} cannot be written: {error.strerror or error}") from None
