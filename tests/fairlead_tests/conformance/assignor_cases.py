"""Reads the conformance cases of Connect's assignors, with their ids.

Entries of tables, which have no ids, are cases as well, named after their content.
"""
# pyright: basic

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlead_tests.conformance.cases import Case, read_document

ASSIGNORS = ("assignors*.yaml", "assignors*.json")
ROUNDS = ("incremental_rounds", "scenarios")
LISTED = (*ROUNDS, "round_robin", "lost_handling", "eager", "config_offset", "worker_side")
"""The sections with lists of cases; rounds have two names."""

TABLES = ("selection", "offered_by_worker", "subprotocols", "error_codes")
"""The tables on protocols."""

RUN_ASSIGNORS = ("incremental_rounds", *LISTED[2:], *TABLES, "backoff_sequence")

EAGER_ORDER = ["stop everything before rejoining", "start what the new assignment lists"]
UNSYNCED = (
    "leave group, back off, keep running assignment for up to max_delay/10 * 1/(retries left)"
    " per attempt (5 attempts), then revoke all"
)


def read_assignor_cases(folder: Path) -> Iterator[Case]:
    """Yield the machine-readable cases of the assignor files in the folder."""
    for told in _documents(folder):
        for section in LISTED:
            yield from filter(_is_readable, _read_list(section, told.get(section) or []))
        yield from _read_tables(told)


def unread_cases(folder: Path) -> list[str]:
    """Return the cases in prose, and the unknown sections and tables."""
    unread: list[str] = []
    for told in _documents(folder):
        worker_side = _read_list("worker_side", told.get("worker_side") or [])
        unread += [case.case_id for case in worker_side if not _is_readable(case)]
        unread += told.keys() - {*LISTED, "meta", "protocol"}
        unread += told.get("protocol", {}).keys() - {*TABLES, "note"}
    return sorted(unread)


def _documents(folder: Path) -> list[dict[str, Any]]:
    paths = (path for pattern in ASSIGNORS for path in folder.glob(pattern))
    return [read_document(path) for path in sorted(paths)]


def _read_list(section: str, told: Any) -> Iterator[Case]:
    """Yield the cases of a list; values beside the list apply to each case."""
    shared: dict[str, Any] = {}
    if isinstance(told, dict):
        shared = {key: value for key, value in told.items() if key != "scenarios"}
        told = told.get("scenarios") or []
    name = ROUNDS[0] if section in ROUNDS else section
    for number, case in enumerate(told):
        yield Case(name, str(case.get("id") or f"{section}-{number}"), shared | case)


def _read_tables(told: dict[str, Any]) -> Iterator[Case]:
    """Yield a case for each entry of the tables on protocols, and of the one on backoff."""
    protocol = told.get("protocol") or {}
    for number, case in enumerate(protocol.get("selection") or []):
        yield Case("selection", f"selection-{number}", case)
    for mode, offered in (protocol.get("offered_by_worker") or {}).items():
        yield Case("offered_by_worker", f"offered-by-{mode}", {"mode": mode, "expect": offered})
    for case in protocol.get("subprotocols") or []:
        yield Case("subprotocols", f"subprotocol-{case['name']}", case)
    for name, number in (protocol.get("error_codes") or {}).items():
        yield Case("error_codes", f"error-code-{name}", {"name": name, "expect": number})
    meta = told.get("meta")
    constants = meta.get("constants") or {} if isinstance(meta, dict) else {}
    for max_delay_ms, delays in (constants.get("backoff_sequence") or {}).items():
        case = {"max_delay_ms": int(max_delay_ms), "expect": delays}
        yield Case("backoff_sequence", f"backoff-{max_delay_ms}", case)


def _is_readable(case: Case) -> bool:
    """Return the expected values, including prose with a known meaning."""
    if case.section != "worker_side":
        return True
    told, expected = case.told, case.told["expect"]
    if "trigger" in told:  # configs are the group's own log here, not Connect's topic
        return False
    if "assignment" in told:
        return "rejoin" in expected or expected.get("if_read_fails") == UNSYNCED
    return "protocol" in told and expected.get("order") in (EAGER_ORDER, [])
