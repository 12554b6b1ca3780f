"""Translates requests for configs, as far as they are about groups.

One request may name resources of several types. What it says of groups becomes calls of groups;
the rest is a request for a broker, and both answers are merged (see `ConfigRequest`).
"""
# pyright: basic

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from .....actors.group.state.own_settings import CLIENT_SETTINGS
from .....actors.messages.errors import Error
from .....actors.messages.groups import (
    AlterGroupConfigs,
    DescribeGroupConfigs,
    DescribeGroupConfigsReply,
    GroupSetting,
    HostCall,
    ListGroups,
    ListGroupsReply,
)
from .....actors.settings import SettingType
from ..frames import Request, item_class, make, response_class
from ..served import ALTER_CONFIGS, DESCRIBE_CONFIGS, LIST_CONFIG_RESOURCES
from ..terms import NO_TIME, code

LOGGER = logging.getLogger(__name__)
GROUP: Final = 32
"""The type of groups among config resources (KIP-1043)."""
SET, DELETE = 0, 1
"""The operations on one setting; the others, append and subtract, are for lists."""
OF_GROUP, OF_NODE = 8, 5
"""Where a value comes from: the group's own config, or the default for it."""
TYPES: Final = {SettingType.INT: 3, SettingType.STRING: 2}

Refusal = tuple[Error, str]


@dataclass(frozen=True, slots=True)
class ConfigRequest:
    """A request for configs, split by who answers it."""

    request: Request
    calls: Sequence[HostCall]
    """What it asks of groups, in order; each may be refused before it is sent."""
    refused: Mapping[int, Refusal]
    """Which of the calls are refused, by position."""
    rest: Request | None
    """What it asks of a broker; None: nothing."""

    @property
    def permitted(self) -> Sequence[HostCall]:
        """The calls that may be sent."""
        return [call for at, call in enumerate(self.calls) if at not in self.refused]


def split_request(request: Request, principal: str | None) -> ConfigRequest:
    """Split a request; `principal` is the client, for the log."""
    if request.head.api == LIST_CONFIG_RESOURCES:
        types = getattr(request.message, "resource_types", None)
        is_for_groups = types is not None and (not types or GROUP in types)
        return ConfigRequest(request, [ListGroups()] if is_for_groups else [], {}, request)
    message = request.message
    groups = [each for each in message.resources if each.resource_type == GROUP]
    others = tuple(each for each in message.resources if each.resource_type != GROUP)
    calls = [_call(request, each, principal) for each in groups]
    flaws = ((at, _flaw(request.head.api, each)) for at, each in enumerate(groups))
    refused = {at: flaw for at, flaw in flaws if flaw is not None}
    is_whole = not groups or bool(others)
    rest = request._replace(message=replace(message, resources=others)) if is_whole else None
    return ConfigRequest(request, calls, refused, rest)


def _call(request: Request, resource: Any, principal: str | None) -> HostCall:
    group_id, api = resource.resource_name, request.head.api
    if api == DESCRIBE_CONFIGS:
        return DescribeGroupConfigs(group_id)
    changes = {each.name: None if _is_deleted(each) else each.value for each in resource.configs}
    replaces_all, only = api == ALTER_CONFIGS, request.message.validate_only
    return AlterGroupConfigs(group_id, changes, replaces_all, only, principal)


def _is_deleted(config: Any) -> bool:
    return getattr(config, "config_operation", SET) == DELETE


def _flaw(api: int, resource: Any) -> Refusal | None:
    """Return why nothing is changed, in the order in which a broker looks; None: no reason."""
    if not resource.resource_name:
        return Error.INVALID_REQUEST, "Default group resources are not allowed."
    if api == DESCRIBE_CONFIGS:
        return None
    names = [each.name for each in resource.configs]
    if len(names) != len({*names}):
        return Error.INVALID_REQUEST, "Error due to duplicate config keys"
    for each in resource.configs:
        operation = getattr(each, "config_operation", SET)
        if operation not in {SET, DELETE}:
            return Error.INVALID_CONFIG, f"{each.name} is no list: nothing can be added to it"
        if operation == SET and each.value is None:
            return Error.INVALID_REQUEST, f"Null value not supported for : {each.name}"
    return None


def log_changes(split: ConfigRequest, replies: Sequence[Any]) -> None:
    """Log which settings were changed, and by whom."""
    for call, reply in zip(split.permitted, replies, strict=False):
        if not isinstance(call, AlterGroupConfigs) or call.validate_only:
            continue
        if reply.error is Error.NONE:
            names, who = ", ".join(sorted(call.configs)), ascii(call.principal)
            LOGGER.info("settings of group %a were changed by %s: %a", call.group_id, who, names)


def answer(split: ConfigRequest, replies: Sequence[Any], theirs: Any) -> Any:
    """Build the response; `theirs` is that of a broker to the rest, None where there is none.

    `replies` are those to the permitted calls, in order.
    """
    head = split.request.head
    kind = response_class(head.api, head.version)
    if head.api == LIST_CONFIG_RESOURCES:
        return _add_groups(theirs, replies)
    field = "results" if head.api == DESCRIBE_CONFIGS else "responses"
    item, given = item_class(kind, field), iter(replies)
    ours = (
        _result(split, item, call, split.refused.get(at) or next(given))
        for at, call in enumerate(split.calls)
    )
    before = () if theirs is None else getattr(theirs, field)
    return make(kind, **{"throttle_time": NO_TIME, field: (*before, *ours)})


def _result(split: ConfigRequest, item: Any, call: Any, found: Any) -> Any:
    """Return the result for one group, from its reply or from its refusal."""
    error, message = found if isinstance(found, tuple) else (found.error, found.message)
    configs: tuple[Any, ...] = ()
    if isinstance(found, DescribeGroupConfigsReply):
        configs = tuple(_configs(split, item, call.group_id, found.settings))
    named = {"resource_type": GROUP, "resource_name": call.group_id, "configs": configs}
    return make(item, error_code=code(error), error_message=message or None, **named)


def _configs(
    split: ConfigRequest, item: Any, group_id: str, settings: Iterable[GroupSetting]
) -> Iterator[Any]:
    """Yield the settings of a group that are asked for."""
    message = split.request.message
    wanted = next(
        each.configuration_keys
        for each in message.resources
        if each.resource_type == GROUP and each.resource_name == group_id
    )
    kind = item_class(item, "configs")
    for each in settings:
        if wanted is None or each.name in wanted:
            yield _config(kind, each, message)


def _config(kind: Any, setting: GroupSetting, request: Any) -> Any:
    definition = CLIENT_SETTINGS[setting.name]
    source = OF_GROUP if setting.is_own else OF_NODE
    synonym = make(
        item_class(kind, "synonyms"), name=setting.name, value=setting.value, source=source
    )
    return make(
        kind,
        name=setting.name,
        value=setting.value,
        read_only=False,
        config_source=source,
        is_sensitive=False,
        synonyms=(synonym,) if request.include_synonyms else (),
        config_type=TYPES[definition.type],
        documentation=(
            definition.documentation if getattr(request, "include_documentation", False) else None
        ),
    )


def _add_groups(theirs: Any, replies: Sequence[ListGroupsReply]) -> Any:
    """Return a broker's list of resources with our groups instead of its own ones.

    What a broker has of groups is of no effect here.
    """
    kind: Any = type(theirs)
    item = item_class(kind, "config_resources")
    others = (each for each in theirs.config_resources if each.resource_type != GROUP)
    names = sorted(name for reply in replies for name in reply.configured)
    groups = (make(item, resource_name=name, resource_type=GROUP) for name in names)
    return replace(theirs, config_resources=(*others, *groups))
