"""Offsets that people set, of a connector that is stopped (KIP-875).

Nothing of it runs then, and all that counts is published, so nobody else has a say in them: a task
that starts later reads them from the log. All offsets of a change are one append to the offset log;
who changed them, and how many, is a record of the control log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....events.catalogue import offset_key
from ....events.commits import Document, Offset, OffsetRecord
from ....events.group import Group
from ....events.model import Key
from ....events.records import ControlRecord, OffsetsAltered, Tombstone
from ...messages.errors import Error
from ...messages.orders import MUST_BE_STOPPED, AlterOffsets
from ..state.soft_state import Decision, DecisionFacts, SoftState, accept, refuse


def alter_offsets(group: Group, soft: SoftState, command: AlterOffsets, now_ms: int) -> Decision:
    """Set offsets of a stopped connector, or take them away; what stays as it is is not written."""
    name = command.connector
    config = group.connectors.get(name)
    if config is None or config.deleting:
        return refuse(soft, Error.UNKNOWN_CONNECTOR, f"Connector {name} not found")
    if not group.is_stopped(name):
        return refuse(soft, Error.INVALID_REQUEST, MUST_BE_STOPPED.format(name))
    if command.stopped_ms not in {None, group.target_states[name].time_ms}:
        message = f"connector {name} ran since its offsets were looked at: nothing was changed"
        return refuse(soft, Error.INVALID_REQUEST, f"{message}; ask again")
    changed = list(_changed(soft.facts, command))
    if not changed:
        return accept(group, soft, ())
    records: list[ControlRecord] = [
        OffsetsAltered(name, command.how, len(changed), now_ms, command.principal)
    ]
    if config.offsets_before and command.offsets is None:
        records.append(replace(config, offsets_before=0))
    told = (each for each in soft.facts.all_progress(name) if each.lag is not None)
    progress = (replace(each, lag=None) for each in told)  # nobody knows what is to read now
    return replace(accept(group, soft, records), offset_records=(*changed, *progress))


def _changed(facts: DecisionFacts, command: AlterOffsets) -> Iterator[OffsetRecord | Tombstone]:
    """Yield the new offsets that differ from those that are logged, and the ends of others."""
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
