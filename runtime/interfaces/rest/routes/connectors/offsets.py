"""The routes of a connector's offsets: get at any time; set, reset, seek while STOPPED (KIP-875).

GET, PATCH and DELETE are Connect's, with its formats and messages; `seek` is an extension. Only the
connector's class can interpret offsets, so it validates them before they are sent to the group. The
offsets of Kafka Connect's own classes are in Kafka, where Connect's code reads and changes them.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, structs
from starlette.concurrency import run_in_threadpool

from ......actors.messages.orders import MUST_BE_STOPPED, AlterOffsets
from ......events.commits import Lag, Offset, identity
from ......events.records import ConnectorConfig
from ......projections.views import NO_LAG, sum_of_lags
from .....pipeline.spi.offsets import PartitionOffset, Seek, SeekEnd
from .....security.rights import Right
from ....replies.building.connectors import UNKNOWN
from ....replies.node import Message
from ....replies.progress import (
    ConnectorOffset,
    ConnectorOffsets,
    OffsetMove,
    OffsetsSought,
    UnreadInput,
)
from ...commands.connect_offsets import OffsetsInKafka
from ...commands.service import ORDER_ERRORS, PrincipalName, Served, Service, refuse
from ...reading.logs import FollowedGroup
from ...server.errors import ApiError
from ...server.parameters import Extended, whole
from ...server.routing import Routes
from ...server.values import CONVERT
from .descriptions import MISSING, require_connector

routes = Routes("offsets")
FIRST: Final = 10
"""How many of the changed partitions the response to a seek lists."""
_WHOLE: Final = 1 << 63
_NO_CLASS: Final = (
    "the class of {} is not installed here, and only that knows where its offsets are: install it,"
    " then reset them; nothing was changed"
)
_CANNOT_SEEK: Final = (
    "to: a connector of Kafka Connect's own class can be moved to earliest alone, which is a reset;"
    " set its offsets to any other place (PATCH); nothing was changed"
)


def _object(value: object) -> object:
    """Refuse values that are not JSON objects."""
    if value is not None and not isinstance(value, dict):
        raise ValueError("must be an object, or null")
    return value  # pyright: ignore[reportUnknownVariableType]


def _flat(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object of texts and numbers, as the log keeps them; raises `ValueError`."""
    for key, each in parts.items():
        if isinstance(each, dict | list):
            told = f"{key}: must be a text, a number, true, false or null"
            raise ValueError(told)  # noqa: TRY004  # what is given is a text
        if isinstance(each, int | float) and not -_WHOLE <= each < _WHOLE:
            raise ValueError(f"{key}: is no number of 64 bits")
        whole(key)
        whole(each)
    return {key: float(each) if isinstance(each, float) else each for key, each in parts.items()}


GivenObject = Annotated[dict[str, Any] | None, Meta(extra={CONVERT: _object})]


class GivenOffset(Struct, frozen=True, forbid_unknown_fields=True):
    """Connect's `ConnectorOffset`; a null offset removes that of the partition."""

    partition: GivenObject = None
    offset: GivenObject = None

    def as_kept(self, number: int) -> PartitionOffset:
        """Convert it to its form in the log; raises `ApiError` with its `number` in the request."""
        part = "partition"
        try:
            partition, part = _flat(self.partition or {}), "offset"
            return PartitionOffset(partition, None if self.offset is None else _flat(self.offset))
        except ValueError as error:
            told = f"the request is malformed: offsets.{number}.{part}: {error}"
            raise ApiError(HTTPStatus.BAD_REQUEST, told) from None


class GivenOffsets(Struct, frozen=True, forbid_unknown_fields=True):
    """Connect's `ConnectorOffsets`."""

    offsets: list[GivenOffset] | None = None


class SeekOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """The position: `earliest`, `latest`, or a time with its zone, `2026-01-01T00:00:00Z`."""

    to: str
    dry_run: bool = False


@routes.add("GET /connectors/{connector}/offsets", Right.VIEW, errors=MISSING)
def list_offsets(
    service: Served,
    connector: str,
    extended: Extended = False,  # noqa: FBT002
) -> ConnectorOffsets:
    """Return the offset of each source partition; if `extended`, also the lag."""
    if in_kafka := _in_kafka(service, connector):
        return in_kafka.read()
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        listed = [_shown(each) for each in logs.offsets(connector)]
        return ConnectorOffsets(listed, _lag(logs, connector) if extended else None)


@routes.add("PATCH /connectors/{connector}/offsets", Right.OPERATE, errors=ORDER_ERRORS)
async def alter_offsets(
    service: Served, principal: PrincipalName, connector: str, body: GivenOffsets
) -> Message:
    """Set offsets of a STOPPED connector; if a partition occurs twice, the last one is used."""
    if not body.offsets:
        why = "Partitions / offsets need to be provided for an alter offsets request"
        raise ApiError(HTTPStatus.BAD_REQUEST, why)
    proposed = body.offsets

    def check() -> tuple[list[PartitionOffset] | None, Message | None]:
        stored, _ = _stopped(service, connector)
        if in_kafka := _in_kafka(service, connector):
            return None, in_kafka.alter([structs.asdict(each) for each in proposed])
        offsets = [each.as_kept(number) for number, each in enumerate(proposed)]
        service.judge_of(stored).check(offsets)
        return offsets, service.ask_for_offsets(stored, offsets, _known(service, connector))

    offsets, answer = await run_in_threadpool(check)
    if offsets is not None:
        order = AlterOffsets(service.group_id, connector, "altered", offsets, principal=principal)
        refuse((await service.commands.carry_out(order)).reply)
    return answer or Message("The offsets for this connector have been altered successfully")


@routes.add("DELETE /connectors/{connector}/offsets", Right.OPERATE, errors=ORDER_ERRORS)
async def reset_offsets(service: Served, principal: PrincipalName, connector: str) -> Message:
    """Remove all offsets of a STOPPED connector: its source is then read from the beginning."""

    def reset() -> tuple[bool, Message | None]:
        stored, _ = _stopped(service, connector)
        if in_kafka := _in_kafka(service, connector):
            return True, in_kafka.reset()
        if service.made_by(stored.config).kind == UNKNOWN:
            raise ApiError(HTTPStatus.BAD_REQUEST, _NO_CLASS.format(connector))
        return False, service.ask_for_offsets(stored, None, _known(service, connector))

    is_done, answer = await run_in_threadpool(reset)
    if not is_done:
        order = AlterOffsets(service.group_id, connector, "reset", principal=principal)
        refuse((await service.commands.carry_out(order)).reply)
    return answer or Message("The offsets for this connector have been reset successfully")


@routes.add("POST /connectors/{connector}/offsets/seek", Right.OPERATE, errors=ORDER_ERRORS)
async def seek_offsets(
    service: Served, principal: PrincipalName, connector: str, order: SeekOrder
) -> OffsetsSought:
    """Move a STOPPED connector to another position; a dry run returns the offsets that change."""
    to = _place(order.to)
    if sought := await run_in_threadpool(_seek_in_kafka, service, connector, order):
        return sought

    def find() -> tuple[int | None, Sequence[OffsetMove], Sequence[PartitionOffset]]:
        if order.dry_run:
            stored, stopped_ms = _find_stopped(service, connector), None
        else:
            stored, stopped_ms = _stopped(service, connector)
        known = _known(service, connector)
        moves = service.judge_of(stored).seek(to, known)
        if moves and not order.dry_run:
            service.ask_for_offsets(stored, moves, known)
        return stopped_ms, _first_moves(moves, known), moves

    stopped_ms, first, moves = await run_in_threadpool(find)
    if moves and not order.dry_run:
        how = f"sought to {order.to}"
        command = AlterOffsets(service.group_id, connector, how, moves, stopped_ms, principal)
        refuse((await service.commands.carry_out(command)).reply)
    return _sought(order, len(moves), first)


def _seek_in_kafka(service: Service, connector: str, order: SeekOrder) -> OffsetsSought | None:
    """Move a connector of Kafka Connect's class to its beginning; None: it is of fairlead's.

    Raises `ApiError`, also for any other place, which Connect cannot look for.
    """
    if (in_kafka := _in_kafka(service, connector)) is None:
        return None
    if order.to != SeekEnd.EARLIEST.value:
        raise ApiError(HTTPStatus.BAD_REQUEST, _CANNOT_SEEK)
    if not order.dry_run:
        _stopped(service, connector)
    known = [PartitionOffset(each.partition, each.offset) for each in in_kafka.read().offsets]
    moves = [PartitionOffset(partition, None) for partition, _ in known]
    if not order.dry_run:
        in_kafka.reset()
    return _sought(order, len(moves), _first_moves(moves, known))


def _sought(order: SeekOrder, moves: int, first: Sequence[OffsetMove]) -> OffsetsSought:
    count = f"{moves} partition{'' if moves == 1 else 's'}"
    does = "would get" if order.dry_run else "got"
    message = f"{count} {does} another offset, or none" if moves else "no offset changes"
    return OffsetsSought(order.to, order.dry_run, moves, list(first), message)


def _in_kafka(service: Service, connector: str) -> OffsetsInKafka | None:
    with service.logs.reading(service.group_id) as logs:
        stored = require_connector(logs, connector)
        split = logs.group.task_configs.get(connector)
    return service.offsets_in_kafka(stored, len(split.tasks) if split else 0)


def _known(service: Service, connector: str) -> list[PartitionOffset]:
    """Return the offsets in the log."""
    with service.logs.reading(service.group_id) as logs:
        return [PartitionOffset(each.partition, each.offset) for each in logs.offsets(connector)]


def _place(text: str) -> Seek:
    """Parse the position of a seek; raises `ApiError`."""
    for end in SeekEnd:
        if text == end.value:
            return end
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None and math.isfinite(at.timestamp()):
            return at
    except (ValueError, OverflowError):
        pass
    raise ApiError(
        HTTPStatus.BAD_REQUEST,
        "to: must be earliest, latest, or a time with its zone, such as 2026-01-01T00:00:00Z",
    )


def _find_stopped(service: Service, name: str) -> ConnectorConfig:
    with service.logs.reading(service.group_id) as logs:
        return require_connector(logs, name)


def _stopped(service: Service, name: str) -> tuple[ConnectorConfig, int]:
    """Return a STOPPED connector, and since when it is stopped; raises `ApiError` otherwise."""
    with service.logs.reading(service.group_id) as logs:
        stored, group = require_connector(logs, name), logs.group
        if not group.is_stopped(name):
            raise ApiError(HTTPStatus.BAD_REQUEST, MUST_BE_STOPPED.format(name))
        return stored, group.target_states[name].time_ms


def _shown(each: Offset) -> ConnectorOffset:
    return ConnectorOffset(each.partition, each.offset)


def _first_moves(
    moves: Sequence[PartitionOffset], known: Sequence[PartitionOffset]
) -> list[OffsetMove]:
    """Return the first moves, with the offsets before."""
    before = {identity(partition): offset for partition, offset in known}
    return [
        OffsetMove(partition, before.get(identity(partition)), offset)
        for partition, offset in moves[:FIRST]
    ]


def _lag(logs: FollowedGroup, name: str) -> UnreadInput | None:
    """Return the total lag of the current tasks; None if it is unknown for one of them."""
    split = logs.group.task_configs.get(name)
    progress = logs.task_progress(name)
    lags = [progress[n].lag for n in range(len(split.tasks) if split else 0) if n in progress]
    total: Lag | None = NO_LAG if lags else None
    for each in lags:
        total = sum_of_lags(total, each)
    return UnreadInput(total.ranges, total.bytes, total.records) if total else None
