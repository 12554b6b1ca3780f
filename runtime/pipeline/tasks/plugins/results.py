"""Checks of the values that a plugin returns, before they are used or written to the log.

Otherwise only the group would refuse values that the log cannot store, and it does not know which
plugin returned them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from .....events.commits import Advance, Document, Lag, Manifest, Part, identity
from ...spi.errors import ContractBroken
from ...spi.sink import StagedParts
from ...spi.source import BatchPlan

T = TypeVar("T")

LONGEST_NOTE: Final = 4 << 10
"""The most bytes of a manifest's note, as JSON, and of a source partition."""
LONGEST_OFFSET: Final = 64 << 10
"""The most bytes of a source offset, as JSON; some contain a list of transactions."""

_LARGEST: Final = (1 << 63) - 1


def check_plan(value: object, offsets: Mapping[str, Document]) -> BatchPlan[Any]:
    """Return a plan; raises `ContractBroken` unless it is a valid batch after these offsets."""
    plan = cast("BatchPlan[object]", _require("source.plan", value, BatchPlan))
    _require("source.plan: its ranges", plan.ranges, tuple)
    _require("source.plan: its advances", plan.advances, tuple)
    _require("source.plan: its remark", plan.remark, str)
    _check_count("source.plan: its rows", plan.rows, -1)
    _check_count("source.plan: its bytes", plan.bytes, 0)
    if plan.lag is not None:
        lag = _require("source.plan: its lag", plan.lag, Lag)
        _check_count("source.plan: its lag in ranges", lag.ranges, 0)
        _check_count("source.plan: its lag in bytes", lag.bytes, 0)
        if lag.records is not None:
            _check_count("source.plan: its lag in records", lag.records, 0)
    _check_advances(plan.advances, offsets)
    return plan


def check_manifest(value: object) -> None:
    """Raise `ContractBroken` if the result of `stage` is no manifest that can be committed."""
    manifest = _require("sink.stage", value, Manifest)
    for name in ("root", "staging", "claim"):
        _check_text(f"sink.stage: the manifest's {name}", getattr(manifest, name))
    for name, least in (("rows", -1), ("bytes", 0), ("files", 0)):
        _check_count(f"sink.stage: the manifest's {name}", getattr(manifest, name), least)
    _require("sink.stage: the manifest's parts", manifest.parts, tuple)
    for part in manifest.parts:
        _require("sink.stage: a part of the manifest", part, Part)
        _check_text("sink.stage: a part's path", part.path)
        _check_count("sink.stage: a part's bytes", part.bytes, 0)
        _check_count("sink.stage: a part's rows", part.rows, -1)
    if flaw := flaw_in(manifest.note, LONGEST_NOTE):
        raise ContractBroken(f"sink.stage: the manifest's note {flaw}")


def check_staged_parts(value: object) -> None:
    """Raise `ContractBroken` if a result of `stage_parts` cannot be committed; None: no parts."""
    if value is not None:
        staged = _require("sink.stage_parts", value, StagedParts)
        check_manifest(staged.manifest)
        _check_count("sink.stage_parts: its rows", staged.rows, 0)


def check_staged_table(value: object) -> None:
    """Raise `ContractBroken` if a result of `stage_table` cannot be committed; None: no table."""
    if value is not None:
        check_manifest(value)


def check_task_configs(configs: object) -> tuple[Mapping[str, str], ...]:
    """Return task configs as a tuple for the report; raises `ContractBroken`."""
    if isinstance(configs, str) or not isinstance(configs, Sequence):
        name = type(configs).__name__
        raise ContractBroken(f"connector.task_configs is a {name}, not a sequence of configs")
    for config in cast("Sequence[object]", configs):
        pairs = cast("Mapping[object, object]", config) if isinstance(config, Mapping) else None
        if pairs is None or not all(
            isinstance(each, str) for pair in pairs.items() for each in pair
        ):
            raise ContractBroken("connector.task_configs: a config is no mapping of texts to texts")
    return tuple(cast("Sequence[Mapping[str, str]]", configs))


def flaw_in(document: object, longest: int) -> str:
    """Return why the log cannot store a document, or would not find it again; "": it can."""
    if not isinstance(document, Mapping):
        return f"is a {type(document).__name__}, not a flat object"
    flat = cast("Mapping[object, object]", document)
    for key, value in flat.items():
        if flaw := _flaw_in_text(key) if isinstance(key, str) else "is no text":
            return f"has a key that {flaw}"
        if flaw := _flaw_in_value(value):
            return f"has under {key!r} a value that {flaw}"
    size = len(json.dumps(dict(flat), ensure_ascii=False).encode())
    return f"takes {size} bytes: {longest} are allowed" if size > longest else ""


def _check_advances(advances: Sequence[Advance], offsets: Mapping[str, Document]) -> None:
    names: set[str] = set()
    for advance in advances:
        _require("source.plan: an advance", advance, Advance)
        if flaw := flaw_in(advance.partition, LONGEST_NOTE):
            raise ContractBroken(f"source.plan: a partition {flaw}")
        name = identity(advance.partition)
        if name in names:
            raise ContractBroken(f"source.plan: two advances are of the partition {name}")
        names.add(name)
        if advance.end is not None and (flaw := flaw_in(advance.end, LONGEST_OFFSET)):
            raise ContractBroken(f"source.plan: the offset of {name} {flaw}")
        if advance.start != offsets.get(name):
            raise ContractBroken(
                f"source.plan: the advance of {name} starts at {advance.start}: "
                f"the offset is {offsets.get(name)}"
            )


def _require(what: str, value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ContractBroken(f"{what} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _check_text(what: str, value: object) -> None:
    if flaw := _flaw_in_text(_require(what, value, str)):
        raise ContractBroken(f"{what} {flaw}")


def _check_count(what: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
        raise ContractBroken(f"{what} is {value!r:.80}, not a whole number from {least} on")


def _flaw_in_value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return _flaw_in_text(value)
    if isinstance(value, int):
        return "" if -_LARGEST <= value <= _LARGEST else "has more than 64 bits"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"is {value}: only finite numbers equal themselves"
    return f"is a {type(value).__name__}, not a text, a number, true, false or null"


def _flaw_in_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not encodable: it holds a lone surrogate"
    return ""
