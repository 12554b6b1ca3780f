"""The asks of members over Kafka's wire: what they may do, and what they learn (PROTOCOL §20).

A worker of the node is code of ours, under the rights of the node. A member over the wire is
anybody who may join. So it acts only for what it holds, under the token of now, and only for
connectors of the class `MemberConnector`: configs of tasks and batches of any other class are
carried out by workers of the node, with the node's rights on the files of its host.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ....events.group import Group, token_of
from ....events.model import Resource, Token
from ....events.placement import is_of_members, most_tasks_in, work_in
from ...messages.asks import (
    AskReply,
    AskRequest,
    GrantedWork,
    MemberAsk,
    OffsetsReply,
    ReadOffsets,
    ReadWork,
    WorkReply,
    refuse_asked,
)
from ...messages.errors import Error
from ...messages.members import CommitOffsets, PutTaskConfigs, ReportStatus

if TYPE_CHECKING:
    from .commit import OffsetLedger

UNKEPT = "nothing was changed"
LONGEST_WORK = 4 << 20
"""How many characters of configs one answer has at most."""
MOST_UNPUBLISHED = 16
"""How many unpublished batches one answer has at most."""


def answer_ask(group: Group, ledger: "OffsetLedger", ask: MemberAsk) -> AskReply | None:
    """Return the answer to an ask; None: it has to be decided as that of any worker."""
    if flaw := _flaw_in_sender(group, ask) or _flaw_in_ask(group, ask):
        return refuse_asked(ask.request, *flaw)
    if isinstance(ask.request, ReadWork):
        return _read_work(group, ask.request)
    if isinstance(ask.request, ReadOffsets):
        return _read_offsets(ledger, ask.request)
    return None


def _flaw_in_sender(group: Group, ask: MemberAsk) -> tuple[Error, str] | None:
    """Return why a sender may not ask; batches of one that is lost are judged by their tokens."""
    member = group.members.get(ask.member_id)
    if member is None and isinstance(ask.request, CommitOffsets):
        return None
    if member is None:
        return Error.UNKNOWN_MEMBER_ID, f"{ask.member_id} is no member: join first; {UNKEPT}"
    if ask.member_epoch > (reached := member.current.member_epoch):
        message = f"{ask.member_id} is at epoch {reached}, not at {ask.member_epoch}"
        return Error.FENCED_MEMBER_EPOCH, f"{message}; {UNKEPT}"
    return None


def _flaw_in_ask(group: Group, ask: MemberAsk) -> tuple[Error, str] | None:
    for resource, token in _claims_of(ask.request):
        is_holder = group.owner.get(resource) == ask.member_id
        if not is_holder or token not in {None, token_of(group, ask.member_id, resource)}:
            under = "" if token is None else f" under token {token}"
            message = f"{ask.member_id} does not hold {resource}{under}"
            return Error.FENCED, f"{message}; {UNKEPT}"
    return _flaw_in_class(group, ask.request) or _flaw_in_split(group, ask.request)


def _claims_of(request: AskRequest) -> Iterable[tuple[Resource, Token | None]]:
    """Return the resources that a member must hold for an ask, with the token where that counts."""
    if isinstance(request, ReportStatus):
        return [(each.resource, each.token) for each in request.updates]
    if isinstance(request, ReadOffsets):
        return [(Resource(request.connector, request.task), None)]
    if isinstance(request, CommitOffsets):
        return [(Resource(each.connector, each.task), None) for each in request.published]
    return ()


def _flaw_in_split(group: Group, request: AskRequest) -> tuple[Error, str] | None:
    if not isinstance(request, PutTaskConfigs) or request.connector not in group.connectors:
        return None
    most = most_tasks_in(group.connectors[request.connector].config)
    if len(request.configs) <= most:
        return None
    message = f"{len(request.configs)} task configs: tasks.max of {request.connector} is {most}"
    return Error.INVALID_REQUEST, f"{message}; {UNKEPT}"


def _flaw_in_class(group: Group, request: AskRequest) -> tuple[Error, str] | None:
    names = set[str]()
    if isinstance(request, CommitOffsets):
        names = {each.commit_id.connector for each in request.commits}
    elif isinstance(request, PutTaskConfigs | ReadOffsets):
        names = {request.connector}
    for name in sorted(names & group.connectors.keys()):
        if not is_of_members(group.connectors[name].config):
            message = f"connector {name} is not of the class MemberConnector, which members run"
            return Error.INVALID_REQUEST, f"{message}: leave it to the node's workers; {UNKEPT}"
    return None


def _read_work(group: Group, request: ReadWork) -> WorkReply:
    work: list[GrantedWork] = []
    size = 0
    for resource in request.resources:
        token = token_of(group, request.member_id, resource)
        connector = group.connectors.get(resource.connector)
        if token is None or connector is None or not is_of_members(connector.config):
            continue
        own = config = work_in(connector.config)
        if resource.is_task:
            config = group.task_configs[resource.connector].tasks[resource.task].config
        size += sum(len(key) + len(value) for each in (own, config) for key, value in each.items())
        if size > LONGEST_WORK:
            message = f"configs of more than {LONGEST_WORK} characters: ask for less at once"
            return WorkReply(Error.INVALID_REQUEST, message)
        state = group.target_state(resource.connector)
        work.append(GrantedWork(resource, token, state, own, config))
    return WorkReply(work=tuple(work))


def _read_offsets(ledger: "OffsetLedger", request: ReadOffsets) -> OffsetsReply:
    progress = ledger.progress(request.connector, request.task)
    unpublished = ledger.unpublished_of(request.connector, request.task)
    return OffsetsReply(
        offsets=tuple(ledger.offset(request.connector, each) for each in request.partitions),
        last=progress.last if progress else None,
        unpublished=tuple(unpublished[:MOST_UNPUBLISHED]),
    )
