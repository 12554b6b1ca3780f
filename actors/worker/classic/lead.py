"""The assignments of a leader, by Connect's own assignors or by one of users.

The configs are those of the group's log, so that offsets say how far each worker has read them. A
leader that has read less than one of its members assigns nothing: it answers CONFIG_MISMATCH to
all, reads on, and all rejoin.

The memory of the incremental assignor is the leader's own; the next leader begins without.

An assignor of users' gets a snapshot of the generation and says where all is to be. What another
member still has is given to nobody yet: its owner is to give it up, rejoins, and the next
generation gives it. Without a sound answer Connect's own assign.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ....events.model import NOTHING, Resources
from ...assignors.classic.incremental import (
    Increments,
    LeaderMemory,
    Round,
    RoundTime,
    assign,
)
from ...assignors.classic.loads import Loads, deal_eagerly
from ...assignors.classic.protocol import (
    EAGER,
    VERSIONS,
    AssignmentError,
    ReceivedAssignment,
)
from ...classic.bytes.connect import WorkerMetadata, decode_metadata, encode_assignment
from ...messages.classic import NO_GENERATION, JoinGroupReply
from ...messages.computing import Assignment, MemberView, Snapshot


@dataclass(frozen=True, slots=True)
class Configs:
    """The configured resources by the log, and the offset of the latest config record."""

    offset: int = -1
    """-1: nothing was ever configured."""
    configured: Resources = NOTHING


class Lead:
    """The assignments that one worker makes whenever it leads."""

    def __init__(self, max_delay_ms: int, assignor: str = "") -> None:
        """Start; lost work waits for `max_delay_ms` at most. `assignor` names one of users'."""
        self._max_delay_ms, self._assignor = max_delay_ms, assignor
        self._memory = LeaderMemory()
        self._last: tuple[int, Mapping[str, bytes]] = (NO_GENERATION, {})
        """The last generation that was assigned, and its assignments by member id."""

    def clear(self) -> None:
        """Forget everything: another member may lead meanwhile."""
        self._memory = LeaderMemory()
        self._last = (NO_GENERATION, {})

    def snapshot_of(self, generation: JoinGroupReply, configs: Configs) -> Snapshot | None:
        """Return what the assignor of users' computes from; None: it is not asked."""
        if not self._assignor or self._last[0] == generation.generation:
            return None
        members = _read(generation)
        if configs.offset < max(each.config_offset for each in members.values()):
            return None  # nothing is assigned
        number, owned = generation.generation, _reported(members)
        views = {
            member_id: _view(member_id, number, each.url, frozenset(owned[member_id]))
            for member_id, each in members.items()
        }
        return Snapshot(
            number, number - 1, self._assignor, b"", configs.configured, views, (), {}, NOTHING, 0
        )

    def assign(
        self,
        generation: JoinGroupReply,
        configs: Configs,
        completed: int,
        now_ms: int,
        computed: Assignment | None = None,
    ) -> Mapping[str, bytes]:
        """Return the assignment of each member; the same for each call in a generation.

        `completed` is the last generation of which this worker got its assignment, `computed` what
        the assignor of users' has said. Raises UnwritableError for an assignment that is too large.
        """
        if self._last[0] != generation.generation:
            members = _read(generation)
            is_sound = computed is not None and _is_sound(computed, members, configs.configured)
            shares = computed.members if computed is not None and is_sound else None
            made = self._assign(generation, members, configs, (completed, now_ms), shares)
            self._last = generation.generation, made
        return self._last[1]

    def _assign(
        self,
        generation: JoinGroupReply,
        members: Mapping[str, WorkerMetadata],
        configs: Configs,
        when: tuple[int, int],
        shares: Mapping[str, Resources] | None,
    ) -> Mapping[str, bytes]:
        """`when` is the last completed generation, and the time; `shares` are what users' said."""
        version, url = VERSIONS[generation.protocol or ""], members[generation.leader].url
        furthest = max(each.config_offset for each in members.values())
        error, delay_ms = AssignmentError.NO_ERROR, 0
        assigned: Loads = {}
        revoked: Loads = {}
        if configs.offset < furthest:
            error = AssignmentError.CONFIG_MISMATCH
        elif shares is not None:
            assigned, revoked = _steps(shares, _reported(members), is_eager=version == EAGER)
        elif version == EAGER:
            assigned = deal_eagerly(configs.configured, members.keys())
        else:
            made = self._increments(generation.generation, members, configs, *when)
            assigned, delay_ms = made.assigned, made.delay_ms
            revoked = _with_deleted(made.revoked, members, configs.configured)
        return {
            member_id: encode_assignment(
                ReceivedAssignment(
                    assigned.get(member_id, ()),
                    revoked.get(member_id, ()),
                    delay_ms,
                    max(furthest, configs.offset),
                    error,
                    generation.leader,
                    url,
                    version,
                )
            )
            for member_id in members
        }

    def _increments(
        self,
        generation: int,
        members: Mapping[str, WorkerMetadata],
        configs: Configs,
        completed: int,
        now_ms: int,
    ) -> Increments:
        clock = RoundTime(now_ms, self._max_delay_ms)
        this = Round(configs.configured, _reported(members), generation, completed, clock)
        self._memory, made = assign(self._memory, this)
        return made


def _view(member_id: str, generation: int, url: str, owned: Resources) -> MemberView:
    return MemberView(member_id, generation, None, url, None, 0, 0, b"", owned, owned, worker=url)


def _is_sound(
    computed: Assignment, members: Mapping[str, WorkerMetadata], configured: Resources
) -> bool:
    """Return whether all that is given is configured, to members, and nothing twice."""
    given = [each for share in computed.members.values() for each in share]
    is_known = computed.members.keys() <= members.keys() and configured.issuperset(given)
    return is_known and len(given) == len({*given})


def _steps(
    shares: Mapping[str, Resources], reported: Loads, *, is_eager: bool
) -> tuple[Loads, Loads]:
    """Return what each member is given and is to give up now, on the way to these shares."""
    held = NOTHING if is_eager else {each for owned in reported.values() for each in owned}
    assigned = {
        member_id: tuple(sorted(shares.get(member_id, NOTHING) - held)) for member_id in reported
    }
    revoked = {
        member_id: tuple(each for each in owned if each not in shares.get(member_id, NOTHING))
        for member_id, owned in reported.items()
    }
    return assigned, {} if is_eager else revoked


def _reported(members: Mapping[str, WorkerMetadata]) -> Loads:
    """Return the resources in each member's metadata."""
    return {
        member_id: each.allocation.assigned if each.allocation else ()
        for member_id, each in members.items()
    }


def _with_deleted(
    revoked: Loads, members: Mapping[str, WorkerMetadata], configured: Resources
) -> Loads:
    """Return what is revoked, and what was deleted while another member led.

    The assignor finds deletions among what it has assigned itself, so that of a new leader would
    not revoke the rest. In Connect that does no harm; here a deletion waits until all members have
    given the connector up.
    """
    return {
        member_id: (
            *(taken := revoked.get(member_id, ())),
            *(each for each in reported if each not in configured and each not in taken),
        )
        for member_id, reported in _reported(members).items()
    }


def _read(generation: JoinGroupReply) -> Mapping[str, WorkerMetadata]:
    version = VERSIONS[generation.protocol or ""]
    return {each.member_id: decode_metadata(each.metadata, version) for each in generation.members}
