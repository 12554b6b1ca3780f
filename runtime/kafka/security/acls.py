"""Access control lists with the meaning of Kafka's: who may do what with which group or topic.

A file has one rule a line, `#` begins a comment, and quotes hold a name with spaces together:

    allow User:ann      read,describe  group  prefixed  billing-
    allow User:*        describe       topic  literal   *
    deny  "User:CN=old" all            group  literal   *        10.0.0.7

A denial outweighs all permissions. Without any rule for a resource nobody may use it, or everybody
where `allow.everyone.if.no.acl.found` says so. Super users may do everything.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from ....actors.messages.consumers import TopicRights


class AclOperation(StrEnum):
    """The operations on resources."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    ALTER_CONFIGS = "alterconfigs"
    DESCRIBE_CONFIGS = "describeconfigs"
    ALL = "all"


class ResourceKind(StrEnum):
    """The kinds of resources."""

    GROUP = "group"
    TOPIC = "topic"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional-id"


ANY: Final = "*"
"""The name that stands for every name, and the host that stands for every host."""
EVERYBODY: Final = "User:*"
CLUSTER: Final = "kafka-cluster"
"""The name of the only resource of its kind."""
LITERAL, PREFIXED = "literal", "prefixed"
ALLOW, DENY = "allow", "deny"
LEAST_WORDS, MOST_WORDS = 6, 7
MOST_REMEMBERED: Final = 1_000
"""The number of clients whose topics are not computed again as long as the rules are the same."""
IMPLY_DESCRIBE: Final = frozenset(
    {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    }
)
"""Permission for any of these is permission to describe."""
IMPLYING: Final = {
    AclOperation.DESCRIBE: IMPLY_DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
    ),
}
"""The operations of which each is permission for another one as well."""


class AclClient(NamedTuple):
    """The client that asks: its principal, such as `User:ann`, and its address."""

    principal: str
    host: str


class AclRule(NamedTuple):
    """One rule for one resource, or for those with a prefix."""

    is_allowed: bool
    principal: str
    operations: frozenset[AclOperation]
    host: str

    def is_for(self, client: AclClient) -> bool:
        """Return whether the rule is about this client."""
        return self.principal in {EVERYBODY, client.principal} and self.host in {ANY, client.host}

    def permits(self, operation: AclOperation) -> bool:
        """Return whether the rule permits an operation."""
        wanted = IMPLYING.get(operation, {operation})
        return self.is_allowed and not self.operations.isdisjoint({AclOperation.ALL, *wanted})

    def denies(self, operation: AclOperation) -> bool:
        """Return whether the rule denies an operation."""
        return not self.is_allowed and not self.operations.isdisjoint({AclOperation.ALL, operation})


class AclPattern(NamedTuple):
    """The name of a resource, or the prefix of names."""

    name: str
    is_prefix: bool


@dataclass(frozen=True, slots=True, eq=False)
class AclRules:
    """All rules, by the resources that they are about."""

    literal: Mapping[tuple[ResourceKind, str], Sequence[AclRule]]
    prefixed: Mapping[tuple[ResourceKind, str], Sequence[AclRule]]
    lengths: Sequence[int] = field(default=())
    """The lengths of all prefixes."""

    def of_topics(self) -> Iterator[tuple[AclPattern, AclRule]]:
        """Yield all rules for topics; those for every topic are rules for the empty prefix."""
        for is_prefix, by_resource in ((False, self.literal), (True, self.prefixed)):
            for (kind, name), rules in by_resource.items():
                is_any = name == ANY and not is_prefix
                pattern = AclPattern("" if is_any else name, is_prefix or is_any)
                if kind is ResourceKind.TOPIC:
                    yield from ((pattern, each) for each in rules)

    def find(self, kind: ResourceKind, name: str) -> Iterator[AclRule]:
        """Yield the rules for one resource."""
        yield from self.literal.get((kind, name), ())
        if name != ANY:
            yield from self.literal.get((kind, ANY), ())
        for length in self.lengths:
            if length <= len(name):
                yield from self.prefixed.get((kind, name[:length]), ())


NO_RULES: Final = AclRules({}, {})
EVERY_TOPIC: Final = TopicRights(prefixes=frozenset({""}))


class AclEntry(NamedTuple):
    """A rule, and what it is about."""

    pattern: str
    """`literal` or `prefixed`."""
    kind: ResourceKind
    name: str
    rule: AclRule


def gather_rules(entries: Iterable[AclEntry]) -> AclRules:
    """Return the rules by their resources."""
    literal: dict[tuple[ResourceKind, str], list[AclRule]] = {}
    prefixed: dict[tuple[ResourceKind, str], list[AclRule]] = {}
    for each in entries:
        rules = literal if each.pattern == LITERAL else prefixed
        rules.setdefault((each.kind, each.name), []).append(each.rule)
    return AclRules(literal, prefixed, sorted({len(name) for _, name in prefixed}))


def parse_acls(text: str) -> AclRules:
    """Parse the content of a file; raises `ValueError` with the number of the line."""
    entries: list[AclEntry] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if words := shlex.split(line, comments=True):
                entries.append(_parse_rule(words))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return gather_rules(entries)


def _parse_rule(words: Sequence[str]) -> AclEntry:
    if not LEAST_WORDS <= len(words) <= MOST_WORDS:
        raise ValueError(
            f"a rule is: allow|deny PRINCIPAL OPERATION {'|'.join(ResourceKind)} literal|prefixed"
            " NAME [HOST]"
        )
    verdict, principal, operations, kind, pattern, name, *rest = words
    _check_word(verdict, (ALLOW, DENY))
    _check_word(pattern, (LITERAL, PREFIXED))
    if not principal.startswith("User:") or not principal.removeprefix("User:"):
        raise ValueError(f"{principal!r} is no principal such as User:ann or User:*")
    if not name or (kind == ResourceKind.CLUSTER and name != CLUSTER):
        raise ValueError(f"{name!r} is no name of a {kind}; that of the cluster is {CLUSTER}")
    wanted = operations.split(",")
    for each in wanted:
        _check_word(each, [*AclOperation])
    _check_word(kind, [*ResourceKind])
    permitted = frozenset(map(AclOperation, wanted))
    rule = AclRule(verdict == ALLOW, principal, permitted, rest[0] if rest else ANY)
    return AclEntry(pattern, ResourceKind(kind), name, rule)


def _check_word(word: str, allowed: Sequence[str]) -> None:
    if word not in allowed:
        raise ValueError(f"{word!r} is none of {', '.join(allowed)}")


@lru_cache(maxsize=MOST_REMEMBERED)
def topics_of(rules: AclRules, client: AclClient, *, allows_without_rules: bool) -> TopicRights:
    """Return the topics that a client may describe by these rules."""
    describe = AclOperation.DESCRIBE
    allowed, denied, ruled = set[AclPattern](), set[AclPattern](), set[AclPattern]()
    for pattern, rule in rules.of_topics():
        ruled.add(pattern)
        if rule.is_for(client) and rule.denies(describe):
            denied.add(pattern)
        elif rule.is_for(client) and rule.permits(describe):
            allowed.add(pattern)
    sets = (
        frozenset(each.name for each in patterns if each.is_prefix is is_prefix)
        for patterns in (allowed, denied, ruled)
        for is_prefix in (False, True)
    )
    names, prefixes, denied_names, denied_prefixes, ruled_names, ruled_prefixes = sets
    rights = TopicRights(names, prefixes, denied_names, denied_prefixes)
    if not allows_without_rules:
        return rights
    return replace(rights, ruled_names=ruled_names, ruled_prefixes=ruled_prefixes)


class Authorizer:
    """Decides what a client may do, by rules that may be replaced."""

    def __init__(
        self, rules: AclRules | None, super_users: frozenset[str], *, allows_without_rules: bool
    ) -> None:
        """`super_users` are principals; without rules yet nobody else may do anything."""
        self.rules = rules
        self._super_users, self._allows_without_rules = super_users, allows_without_rules

    def describable_topics(self, client: AclClient) -> TopicRights:
        """Return the topics that a client may describe."""
        if client.principal in self._super_users:
            return EVERY_TOPIC
        if self.rules is None:
            return TopicRights()
        return topics_of(self.rules, client, allows_without_rules=self._allows_without_rules)

    def allows(
        self, client: AclClient, operation: AclOperation, kind: ResourceKind, name: str
    ) -> bool:
        """Return whether a client may do this with a resource."""
        if client.principal in self._super_users:
            return True
        if self.rules is None:
            return False
        rules = [*self.rules.find(kind, name)]
        if not rules:
            return self._allows_without_rules
        own = [each for each in rules if each.is_for(client)]
        if any(each.denies(operation) for each in own):
            return False
        return any(each.permits(operation) for each in own)
