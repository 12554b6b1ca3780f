"""Source offsets that people set while a connector is stopped (KIP-875).

Nothing of it runs then, and all committed batches are published, so nothing else changes them: a
task that starts later reads them from the log. All offsets of a change are one append to the offset
log, with a record of who changed them, and how many. The same record goes to the control log, for
the history: if the process ends in between, the next one writes it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ....events.catalogue import offset_key
from ....events.commits import Document, Offset, OffsetRecord
from ....events.group import Group
from ....events.model import Key
from ....events.records import ConnectorConfig, ControlRecord, OffsetsAltered, Tombstone
from ...messages.commands import RecordAlteration
from ...messages.errors import Error
from ...messages.orders import MUST_BE_STOPPED, AlterOffsets
from ..state.soft_state import Decision, DecisionFacts, SoftState, accept, refuse


def alter_offsets(group: Group, soft: SoftState, command: AlterOffsets, now_ms: int) -> Decision:
    """Set or delete offsets of a stopped connector; unchanged ones are not written.

    Those at which no task begins are deleted while it runs, too.
    """
    name = command.connector
    config = group.connectors.get(name)
    if config is None or config.deleting:
        return refuse(soft, Error.UNKNOWN_CONNECTOR, f"Connector {name} not found")
    if not (command.are_notes or group.is_stopped(name)):
        return refuse(soft, Error.INVALID_REQUEST, MUST_BE_STOPPED.format(name))
    wanted = group.target_states.get(name)
    if command.stopped_ms not in {None, wanted.time_ms if wanted else None}:
        message = f"connector {name} ran since its offsets were looked at: nothing was changed"
        return refuse(soft, Error.INVALID_REQUEST, f"{message}; ask again")
    changed = list(_find_changes(soft.facts, command))
    if not changed:
        return accept(group, soft, ())
    altered = OffsetsAltered(name, command.how, len(changed), now_ms, command.principal)
    told = (each for each in soft.facts.all_progress(name) if each.lag is not None)
    progress = (replace(each, lag=None) for each in told)  # nobody knows what is to read now
    records = _control_records(config, altered, is_reset=command.offsets is None)
    decision = accept(group, soft, records)
    return replace(decision, offset_records=(*changed, *progress, altered))


def record_alteration(group: Group, soft: SoftState, command: RecordAlteration, _: int) -> Decision:
    """Record a change of offsets that the control log lacks."""
    name = command.connector
    config, altered = group.connectors.get(name), soft.facts.alteration(name)
    if config is None or altered is None or altered == group.offset_changes.get(name):
        return Decision(soft)
    return Decision(
        soft, _control_records(config, altered, is_reset=not soft.facts.count_offsets(name))
    )


def forget_alterations(facts: DecisionFacts, connectors: Iterable[str]) -> tuple[Tombstone, ...]:
    """Return the tombstones that the offset log needs when these connectors are deleted."""
    known = filter(facts.alteration, connectors)
    return tuple(Tombstone(OffsetsAltered, (name,)) for name in known)


def _control_records(
    config: ConnectorConfig, altered: OffsetsAltered, *, is_reset: bool
) -> tuple[ControlRecord, ...]:
    if config.offsets_before and is_reset:
        return altered, replace(config, offsets_before=0)
    return (altered,)


def _find_changes(
    facts: DecisionFacts, command: AlterOffsets
) -> Iterator[OffsetRecord | Tombstone]:
    """Yield the offsets that differ from the logged ones, and tombstones of deleted ones."""
    name = command.connector
    if command.offsets is None:
        for each in facts.offsets(name):
            yield Tombstone(Offset, (name, each.partition_key))
        return
    last: Mapping[Key, tuple[Document, Document | None]] = {
        offset_key(name, partition): (partition, offset) for partition, offset in command.offsets
    }
    for key, (partition, offset) in last.items():
        logged = facts.offset(name, partition)
        if offset is None and logged is not None:
            yield Tombstone(Offset, key)
        elif offset is not None and offset != logged:
            yield Offset(name, partition, offset)
