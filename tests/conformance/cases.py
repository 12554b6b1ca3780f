"""Reading the conformance data: one case after the other, each with its id."""
# pyright: basic

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

RECONCILIATION = "reconciliation*.yaml"
ASSIGNORS = ("assignors*.yaml", "assignors*.json")
RUN = ("builder_cases", "sequences", "epoch_validation")
"""The sections that a machine can run; the other tables have tests of their own."""


class Case(NamedTuple):
    """One case as the data tells it."""

    section: str
    case_id: str
    told: dict[str, Any]


def read_cases(folder: Path) -> Iterator[Case]:
    """Yield the cases of every reconciliation file in the folder, file by file."""
    for path in sorted(folder.glob(RECONCILIATION)):
        document = yaml.safe_load(path.read_text()) or {}
        for section in RUN:
            yield from _read_section(section, document.get(section) or [])


def _read_section(section: str, told: Any) -> Iterator[Case]:
    cases = told.get("cases") or [] if isinstance(told, dict) else told
    for number, case in enumerate(cases):
        yield Case(section, str(case.get("id") or f"{section}-{number}"), case)


def assignor_files(folder: Path) -> list[str]:
    """Return the names of the assignor files in the folder."""
    return sorted(path.name for pattern in ASSIGNORS for path in folder.glob(pattern))
