"""Reads the conformance cases of the coordinator, with their ids."""
# pyright: basic

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

RECONCILIATION = "reconciliation*.yaml"
RUN = (
    "builder_cases",
    "sequences",
    "epoch_validation",
    "request_validation",
    "group_states",
    "epoch_bumps",
    "static_membership",
    "timers",
    "leave_and_delete",
    "classic_translation",
    "migration",
)
"""The sections that are run; the last six are prose, with a function for each case."""

TOLD_IN_WORDS = RUN[-6:]
"""The sections with cases in prose."""


class Case(NamedTuple):
    """One case of the data."""

    section: str
    case_id: str
    told: dict[str, Any]


@cache
def read_document(path: Path) -> dict[str, Any]:
    """Read a file of cases, with a cache for all its sections."""
    text = path.read_text()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if available
    return (json.loads(text) if path.suffix == ".json" else yaml.load(text, loader)) or {}


def read_cases(folder: Path) -> Iterator[Case]:
    """Yield the cases of every reconciliation file in the folder, file by file."""
    for path in sorted(folder.glob(RECONCILIATION)):
        document = read_document(path)
        for section in RUN:
            yield from _read_section(section, document.get(section) or [])


def _read_section(section: str, told: Any) -> Iterator[Case]:
    """Yield the cases of a list, of a list with remarks, or of a table of sentences."""
    cases = told.get("cases") if isinstance(told, dict) else told
    if cases is None:
        cases = [{"id": name, "expect": text} for name, text in _sentences(told)]
    for number, case in enumerate(cases):
        yield Case(section, str(case.get("id") or f"{section}-{number}"), case)


def _sentences(told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the cases of a table; a list is one case for each item."""
    for name, text in told.items():
        if isinstance(text, list) and not name.endswith("in_order"):
            yield from ((each, name) for each in text)
        else:
            yield name, text
