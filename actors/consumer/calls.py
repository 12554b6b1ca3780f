"""The calls of a group of Kafka's consumers, in their own words: heartbeats, topics, offsets.

* A ConsumerGroupHeartbeat is validated, and stands for the heartbeat of any group; so the answer is
  translated back (see `requests`).
* Committed offsets belong to the group whatever its type, and outlive its members until they
  expire, or until their topic is deleted.
* The process passes the topics of the cluster with `TopicsSeen`, whenever they change, and the same
  mapping to all groups. Before the first one, a group knows only the topics in its log.
* A running consumer repeats the same heartbeat for hours. As long as nothing is written to the log
  of its group, the answer is the same too, and only the member's session has to be extended: so
  answers without news are kept (`HeartbeatCache`).
* A regular expression stands for the topics that its member may describe. These rights come with
  each heartbeat, and are not in the log: after a restart a pattern stands for what it did before
  until the next heartbeat of its member.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from ...events.group import Group
from ...events.log.space import DiskSpace
from ...events.records import Topic
from ..assignors.built_in.catalogue import Computes
from ..classic.coordinator import ClassicCoordinator
from ..group.kind import GroupKind
from ..group.members.commit import OffsetLedger
from ..group.state.own_settings import OF_CONSUMERS
from ..group.state.settings import GroupSettings
from ..group.state.soft_state import DONE
from ..messages.commands import Command, Reply
from ..messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    TopicRights,
    TopicsSeen,
)
from ..messages.errors import SUCCESS, Error
from ..messages.groups import RemoveGroup
from ..messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply
from ..messages.offsets import OffsetCall
from ..timing import Now
from .decide import SERVER_ASSIGNORS, decide
from .offsets.clean_up import DeletedTopics, OffsetCleanUp
from .offsets.handler import OffsetHandler
from .patterns import find_matches, flaw_in_pattern
from .requests import as_heartbeat, as_reply, refuse_request
from .topics import end_subscriptions
from .translation import CONSUMER_TRANSLATION

NO_TOPICS: Mapping[str, Topic] = {}


class OffsetCalls:
    """The calls about the offsets of one group, whatever its kind; see `KindCalls`."""

    def __init__(
        self,
        group: Group,
        classic: ClassicCoordinator,
        ledger: OffsetLedger,
        settings: GroupSettings,
        steady_ms: int,
    ) -> None:
        self._group = group
        self._offsets = OffsetHandler(group, classic, ledger)
        self._clean_up = OffsetCleanUp(group, classic, ledger, settings, steady_ms)
        self._deleted = DeletedTopics(group, ledger)
        """Which of the offsets' topics are gone."""
        self._topics: Mapping[str, Topic] | None = None
        """The topics of the cluster, by name; None: unknown yet."""

    def translate(self, request: object, space: DiskSpace, now: Now) -> Command | Reply | None:
        """Return the command for a request, or its answer; None: it is no call about offsets."""
        if isinstance(request, OffsetCall):
            return self._offsets.answer(request, self._topics, space, now)
        if isinstance(request, TopicsSeen):
            self._topics = request.topics
            self._deleted.follow(request.topics, request.changed, now)
            return DONE
        return None

    def answer(self, request: ConsumerGroupHeartbeat, reply: HeartbeatReply) -> Reply:
        """Return the answer to a translated heartbeat: there are none."""
        del request
        return reply

    def remember(self, request: ConsumerGroupHeartbeat, end: int, reply: Reply) -> None:
        """Do nothing: answers about offsets are not cached."""

    def repeat(self, request: ConsumerGroupHeartbeat) -> Reply | None:
        """Return None: each heartbeat has to be decided."""
        del request
        return None

    def run_timers(self, settings: GroupSettings, space: DiskSpace, now: Now) -> bool:
        """Delete expired offsets; return whether the group has to be deleted with the last one."""
        self._deleted.run_timers(space, now)
        return self._clean_up.run_timers(settings, space, now)

    def next_ms(self, settings: GroupSettings) -> int:
        """Return when something is due next, steady clock."""
        check_ms = self._clean_up.next_ms(settings)
        deleted_ms = self._deleted.next_ms()
        return check_ms if deleted_ms is None else min(check_ms, deleted_ms)


class ConsumerCalls(OffsetCalls):
    """The calls of one group of consumers."""

    def __init__(
        self,
        group: Group,
        classic: ClassicCoordinator,
        ledger: OffsetLedger,
        settings: GroupSettings,
        steady_ms: int,
        server_assignors: Collection[str] = SERVER_ASSIGNORS,
    ) -> None:
        """`server_assignors` are the names of those that a member may name."""
        super().__init__(group, classic, ledger, settings, steady_ms)
        self._server_assignors = server_assignors
        self._cache = HeartbeatCache(group)
        self._rights: dict[str, TopicRights | None] = {}
        """The rights in the last heartbeat of each member with a pattern, by member id."""

    def translate(self, request: object, space: DiskSpace, now: Now) -> Command | Reply | None:
        """Return the command for a request, or its answer; None: it is no consumer's call."""
        if isinstance(request, ConsumerGroupHeartbeat):
            return self._heartbeat_of(request)
        translated = super().translate(request, space, now)
        if not isinstance(request, TopicsSeen):
            return translated
        return TopicsSeen(request.topics, self._match_all(request.topics))

    def _match_all(self, topics: Mapping[str, Topic]) -> Mapping[str, tuple[str, ...]]:
        """Return the topics of each member with a pattern whose rights are known."""
        matches: dict[tuple[str, TopicRights | None], tuple[str, ...]] = {}
        by_member: dict[str, tuple[str, ...]] = {}
        for member_id, rights in self._rights.items():
            if pattern := self._pattern_of(member_id):
                key = pattern, rights
                if key not in matches:
                    matches[key] = find_matches(pattern, topics, rights)
                by_member[member_id] = matches[key]
        return by_member

    def _pattern_of(self, member_id: str) -> str:
        subscription = self._group.subscriptions.get(member_id)
        return subscription.pattern if subscription else ""

    def _heartbeat_of(
        self, request: ConsumerGroupHeartbeat
    ) -> Heartbeat | ConsumerGroupHeartbeatReply:
        pattern = request.subscribed_topic_regex
        refused = refuse_request(request, self._server_assignors)
        if refused is None and pattern and (flaw := flaw_in_pattern(pattern)):
            message = f"SubscribedTopicRegex is no regular expression of RE2: {flaw}"
            refused = Error.INVALID_REGULAR_EXPRESSION, message
        if refused is not None:
            error, message = refused
            return ConsumerGroupHeartbeatReply(error, message=message, number=request.number)
        own = self._group.topics or NO_TOPICS
        names = own if self._topics is None else self._topics
        if pattern is None and request.member_epoch >= JOIN_EPOCH and self._has_new_rights(request):
            pattern = self._pattern_of(request.member_id)
            request = replace(request, subscribed_topic_regex=pattern)
        matched = find_matches(pattern, names, request.topic_rights) if pattern else ()
        return as_heartbeat(request, own, matched)

    def _has_new_rights(self, request: ConsumerGroupHeartbeat) -> bool:
        """Return whether a member's pattern may stand for other topics than before."""
        member_id = request.member_id
        if not self._pattern_of(member_id):
            return False
        return member_id not in self._rights or self._rights[member_id] != request.topic_rights

    def answer(self, request: ConsumerGroupHeartbeat, reply: HeartbeatReply) -> Reply:
        """Return Kafka's answer to a heartbeat."""
        if reply.error in SUCCESS and reply.member_id and self._pattern_of(reply.member_id):
            self._rights[reply.member_id] = request.topic_rights
            if len(self._rights) > 2 * len(self._group.subscriptions):
                known = self._group.subscriptions
                self._rights = {key: each for key, each in self._rights.items() if key in known}
        return as_reply(reply, self._group.topics or NO_TOPICS, request.number)

    def remember(self, request: ConsumerGroupHeartbeat, end: int, reply: Reply) -> None:
        """Cache the answer to a heartbeat for its repetitions; the log ended at `end` before it."""
        if isinstance(reply, ConsumerGroupHeartbeatReply):
            self._cache.add(request, end, reply)

    def repeat(self, request: ConsumerGroupHeartbeat) -> Reply | None:
        """Return the answer to a repeated heartbeat without news; None: it has to be decided."""
        return None if self._has_new_rights(request) else self._cache.reply_to(request)


UNCHANGED_MS: Final = -1

_Key = tuple[str, int, str, str]
"""The only fields of a cacheable heartbeat: member id and epoch, client id and host."""


class _CachedReply(NamedTuple):
    """A heartbeat that changed nothing, and its reply."""

    request: ConsumerGroupHeartbeat
    reply: ConsumerGroupHeartbeatReply


class HeartbeatCache:
    """The cached replies of one group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._end = group.end
        """The end of the group's log for which they are valid: any record changes the group."""
        self._replies: dict[_Key, _CachedReply] = {}
        """The cached replies, each with its heartbeat."""

    def reply_to(self, request: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatReply | None:
        """Return the reply to a heartbeat; None: it is not cached, and has to be decided."""
        if self._end != self._group.end:
            self._replies.clear()
            self._end = self._group.end
        key = _key_of(request)
        cached = self._replies.get(key)
        if cached is None or not (cached.request is request or _is_bare(request)):
            return None
        if cached.request.number != request.number:
            reply = replace(cached.reply, number=request.number)
            cached = self._replies[key] = _CachedReply(request, reply)
        return cached.reply

    def add(
        self, request: ConsumerGroupHeartbeat, end: int, reply: ConsumerGroupHeartbeatReply
    ) -> None:
        """Cache a reply, unless records were written since the log ended at `end`."""
        has_news = reply.error is not Error.NONE or reply.assignment is not None
        if end == self._end == self._group.end and not has_news and _is_bare(request):
            self._replies[_key_of(request)] = _CachedReply(request, reply)


def _key_of(request: ConsumerGroupHeartbeat) -> _Key:
    return request.member_id, request.member_epoch, request.client_id, request.client_host


def _is_bare(request: ConsumerGroupHeartbeat) -> bool:
    """Return whether a heartbeat has no fields but those in its key."""
    return (
        request.member_epoch > JOIN_EPOCH
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == UNCHANGED_MS
        and request.server_assignor is None
        and request.instance_id is None
        and request.rack_id is None
    )


CONSUMERS: Final = GroupKind(
    decide,
    end_subscriptions,
    CONSUMER_TRANSLATION,
    lambda group: RemoveGroup(group.group_id),
    SERVER_ASSIGNORS,
    own_settings=OF_CONSUMERS,
    parks_lost_work=False,
    looks_regularly=False,
    is_of_clients=True,
    open_calls=ConsumerCalls,
)
"""A group that consumers of both of Kafka's protocols may join."""


def with_assignors(kind: GroupKind, users: Mapping[str, Computes]) -> GroupKind:
    """Return a kind of groups that may compute with users' own server assignors as well."""
    if not users:
        return kind
    served = {**users, **kind.server_assignors}
    opens = kind.open_calls
    if opens is ConsumerCalls:
        opens = partial(ConsumerCalls, server_assignors=served)
    return replace(kind, server_assignors=served, open_calls=opens)
