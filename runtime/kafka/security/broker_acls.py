"""The access control lists of the brokers, which hold here as well (`kafka.acls=broker`).

They are asked for by DescribeAcls, as the node's own user, which needs the right to describe the
cluster there. Until they were read once nobody but super users may do anything. A broker that
refuses, or cannot be reached, changes nothing: the lists of before stay in force.
"""
# pyright: basic

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

from kio.schema.errors import ErrorCode

from ..broker.upstream import BrokerUnavailable, Upstream
from ..wire.bounds import FrameRefused
from .acls import (
    LITERAL,
    PREFIXED,
    AclEntry,
    AclOperation,
    AclRule,
    Authorizer,
    ResourceKind,
    gather_rules,
)

DESCRIBE_ACLS: Final = 29
VERSION: Final = 2
REFRESH_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
"""The timeout of the broker's response."""
ANY: Final = 1
"""Stands for everything, in each filter."""
ALLOW: Final = 3
KINDS: Final = {
    2: ResourceKind.TOPIC,
    3: ResourceKind.GROUP,
    4: ResourceKind.CLUSTER,
    5: ResourceKind.TRANSACTIONAL_ID,
}
PATTERNS: Final = {3: LITERAL, 4: PREFIXED}
OPERATIONS: Final = {
    2: AclOperation.ALL,
    3: AclOperation.READ,
    4: AclOperation.WRITE,
    5: AclOperation.CREATE,
    6: AclOperation.DELETE,
    7: AclOperation.ALTER,
    8: AclOperation.DESCRIBE,
    10: AclOperation.DESCRIBE_CONFIGS,
    11: AclOperation.ALTER_CONFIGS,
}
"""Kafka's codes; a rule of another operation still is a rule for its resource."""


class AclsRefused(Exception):  # noqa: N818  # says what happened
    """The broker does not tell its access control lists."""


class BrokerAcls:
    """Keeps an authorizer in step with the brokers."""

    def __init__(
        self,
        authorizer: Authorizer,
        connect: Callable[[], Upstream],
        warn: Callable[[str, str], None],
    ) -> None:
        """`connect` returns a connection as the node's user; `warn` logs what happens to whom."""
        self._authorizer, self._connect, self._warn = authorizer, connect, warn
        self._upstream = connect()
        """The present connection; another one after each failure."""
        self._entries: frozenset[AclEntry] | None = None
        """The rules as of the last answer."""

    async def watch(self, renew_rights: Callable[[], None]) -> None:
        """Read the rules again and again; runs until it is cancelled."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            if await self.refresh():
                renew_rights()

    async def refresh(self) -> bool:
        """Read the rules; return whether they have changed. A failure is logged."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                entries = frozenset(_entries_in(await self._ask()))
        except (
            *(BrokerUnavailable, FrameRefused, AclsRefused),
            *(OSError, EOFError, TimeoutError),
        ) as error:
            self._upstream.close()
            self._upstream = self._connect()
            kept = "nobody but super users has rights" if self._entries is None else "old ones stay"
            self._warn("the broker's access control lists cannot be read:", f"{error}; {kept}")
            return False
        if entries == self._entries:
            return False
        self._entries, self._authorizer.rules = entries, gather_rules(entries)
        return True

    async def _ask(self) -> Any:
        filters = {
            **dict.fromkeys(("resource_type_filter", "pattern_type_filter"), ANY),
            **dict.fromkeys(("operation", "permission_type"), ANY),
            **dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter")),
        }
        answer = await self._upstream.ask(DESCRIBE_ACLS, VERSION, **filters)
        if answer.error_code is not ErrorCode.none:
            raise AclsRefused(f"{answer.error_code.name}: {answer.error_message}")
        return answer


def _entries_in(answer: Any) -> Iterator[AclEntry]:
    """Yield the rules that are about what there is here."""
    for each in answer.resources:
        kind, pattern = KINDS.get(each.resource_type), PATTERNS.get(each.pattern_type)
        if kind is None or pattern is None:
            continue
        for acl in each.acls:
            known = OPERATIONS.get(acl.operation)
            operations = frozenset(() if known is None else (known,))
            rule = AclRule(acl.permission_type == ALLOW, acl.principal, operations, acl.host)
            yield AclEntry(pattern, kind, each.resource_name, rule)
