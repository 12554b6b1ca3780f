"""Which batches count (DATA_PLANE §3)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.members.commit import CommitDecision, OffsetLedger, commit_offsets
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import CommitOffsets, CommitReply, CommitVerdict
from fairlead.events.catalogue import commit_key, offset_key
from fairlead.events.commits import (
    Advance,
    Commit,
    CommitId,
    Committed,
    Cost,
    Document,
    Lag,
    Manifest,
    Offset,
    TaskProgress,
)
from fairlead.events.group import token_of
from fairlead.events.model import Token
from fairlead.events.records import Tombstone
from fairlead.runtime.simulation.group.durable_state import MemoryLog
from fairlead_tests.decider import Decider, resource, resources

FILE: Document = {"bucket": 1}
TOKEN = Token(1, 1)
MANIFEST = Manifest("/out", "_fairlead/staging/A-0/1-1/0", rows=8, bytes=80, files=1)
EMPTY = replace(MANIFEST, rows=0, files=0)


class Scene:
    """W1 runs connector A and its two tasks; W2 waits."""

    def __init__(self) -> None:
        self.decider = Decider()
        self.decider.configure("A A-0 A-1")
        self.decider.join("W1")
        self.decider.settle()
        self.ledger = OffsetLedger(MemoryLog())

    def commit(self, *commits: Commit, by: str = "W1") -> tuple[Error, ...]:
        decision = self.decide(CommitOffsets("connect", by, commits))
        assert [each.commit_id for each in decision.reply.verdicts] == [
            each.commit_id for each in commits
        ]
        return tuple(each.error for each in decision.reply.verdicts)

    def decide(self, command: CommitOffsets) -> CommitDecision:
        decision = commit_offsets(self.decider.group, self.ledger, command, now_ms=5)
        refused = all(each.error is Error.FENCED for each in decision.reply.verdicts)
        assert not (refused and not command.published and decision.records)
        self.ledger.lay(decision.records)
        return decision


@pytest.fixture
def scene() -> Scene:
    return Scene()


def batch(
    number: int, start: int | None, end: int, *, token: Token = TOKEN, task: int = 0
) -> Commit:
    """Return a batch that moves the one file's offset from `start` rows to `end`."""
    step = Advance(FILE, None if start is None else {"row": start}, {"row": end})
    return Commit(CommitId("A", task, token, number), (step,), MANIFEST, rows_in=10)


def test_a_commit_writes_offset_manifest_and_progress(scene: Scene) -> None:
    first = replace(batch(0, None, 10), lag=Lag(2, 20))
    decision = scene.decide(CommitOffsets("connect", "W1", (first,)))
    assert decision == CommitDecision(
        (
            Offset("A", FILE, {"row": 10}),
            Committed(first, 5),
            TaskProgress(first.commit_id, 1, 10, 8, 80, 5, Lag(2, 20), first.commit_id),
        ),
        CommitReply((CommitVerdict(first.commit_id, Error.NONE),)),
    )


def test_an_advance_to_no_offset_removes_the_logged_one(scene: Scene) -> None:
    scene.commit(batch(0, None, 10))
    away = Commit(CommitId("A", 0, TOKEN, 1), (Advance(FILE, {"row": 10}, None),), EMPTY, rows_in=0)
    removal, *_ = scene.decide(CommitOffsets("connect", "W1", (away,))).records
    assert removal == Tombstone(Offset, offset_key("A", FILE))
    assert scene.ledger.offset("A", FILE) is None
    assert scene.ledger.count("A") == 0
    again = replace(away, commit_id=away.commit_id._replace(batch=2))
    assert scene.commit(again) == (Error.FENCED,)
    nothing = replace(again, advances=(Advance(FILE, None, None),))
    assert scene.commit(nothing, batch(3, None, 20)) == (Error.NONE, Error.NONE)
    assert scene.ledger.offset("A", FILE) == {"row": 20}


def test_progress_adds_up(scene: Scene) -> None:
    scene.commit(batch(0, None, 10))
    scene.commit(batch(1, 10, 20))
    last = batch(1, 0, 0).commit_id
    assert scene.ledger.progress("A", 0) == TaskProgress(last, 2, 20, 16, 160, 5, filled=last)


def test_rows_that_were_left_out_add_up_and_so_does_what_batches_took(scene: Scene) -> None:
    letters = replace(MANIFEST, rows=2)
    for number, (start, end) in enumerate([(None, 10), (10, 20), (20, 30)]):
        made = batch(number, start, end)
        queue = letters if number else None
        scene.commit(
            replace(
                made,
                skipped=3,
                cost=Cost(1, 2, 3, 4, 5, 6),
                manifest=replace(MANIFEST, dead_letters=queue),
            )
        )
    progress = scene.ledger.progress("A", 0)
    assert progress is not None
    assert (progress.skipped, progress.dead_letters) == (9, 4)
    assert progress.cost == Cost(3, 6, 9, 12, 15, 18)


def test_a_batch_without_rows_leaves_nothing_to_publish(scene: Scene) -> None:
    empty = replace(batch(0, None, 10), manifest=EMPTY)
    scene.commit(empty)
    assert not scene.ledger.is_unpublished(empty.commit_id)
    progress = scene.ledger.progress("A", 0)
    assert progress is not None
    assert (progress.last, progress.filled) == (empty.commit_id, None)


def test_what_was_staged_last_stays_known_over_batches_without_rows(scene: Scene) -> None:
    filled, empty = batch(0, None, 10), replace(batch(1, 10, 20), manifest=EMPTY)
    scene.commit(filled)
    scene.commit(empty)
    progress = scene.ledger.progress("A", 0)
    assert progress is not None
    assert (progress.last, progress.filled) == (empty.commit_id, filled.commit_id)


def test_what_was_decided_stands_before_the_log_until_all_of_it_is_durable() -> None:
    log = MemoryLog()
    ledger = OffsetLedger(log)
    ledger.write([Offset("A", FILE, {"row": 1})])
    (first,) = ledger.hand_out()
    ledger.write([Offset("A", FILE, {"row": 2})])
    ledger.advance()  # the first is durable, and the second is not handed out yet
    assert ledger.offset("A", FILE) == {"row": 2}
    assert [each.key for each in ledger.hand_out()] == [first.key]
    ledger.advance()
    assert ledger.offset("A", FILE) is None  # it is read from the log, which has nothing


def test_the_same_commit_again_is_accepted_and_changes_nothing(scene: Scene) -> None:
    once = batch(0, None, 10)
    scene.commit(once)
    assert scene.decide(CommitOffsets("connect", "W1", (once,))) == CommitDecision(
        (), CommitReply((CommitVerdict(once.commit_id, Error.NONE),))
    )


def test_a_commit_that_does_not_start_at_the_logged_offset_is_refused(scene: Scene) -> None:
    scene.commit(batch(0, None, 10))
    assert scene.commit(batch(1, 0, 20)) == (Error.FENCED,)
    assert scene.commit(batch(1, None, 20)) == (Error.FENCED,)
    assert scene.commit(batch(1, 10, 20)) == (Error.NONE,)


def test_an_older_batch_is_refused(scene: Scene) -> None:
    scene.commit(batch(3, None, 10))
    assert scene.commit(batch(2, 10, 20)) == (Error.FENCED,)


@pytest.mark.parametrize("token", [Token(0, 1), Token(2, 1), Token(1, 0), Token(1, 2)], ids=str)
def test_a_commit_with_another_token_is_refused(scene: Scene, token: Token) -> None:
    assert scene.commit(batch(0, None, 10, token=token)) == (Error.FENCED,)


def test_only_the_holder_commits(scene: Scene) -> None:
    scene.decider.join("W2")
    assert scene.commit(batch(0, None, 10), by="W2") == (Error.FENCED,)
    assert scene.commit(batch(0, None, 10), by="nobody") == (Error.FENCED,)
    assert scene.commit(batch(0, None, 10, task=7)) == (Error.FENCED,)


def test_what_is_pending_revocation_may_finish_its_batch_and_then_no_more(scene: Scene) -> None:
    decider = scene.decider
    decider.join("W2")
    decider.compute()
    decider.beat("W1")
    (moved,) = (each for each in decider.current("W1").pending if each.is_task)
    assert scene.commit(batch(0, None, 10, task=moved.task)) == (Error.NONE,)
    decider.settle()
    assert scene.commit(batch(1, 10, 20, task=moved.task)) == (Error.FENCED,)
    token = token_of(decider.group, "W2", moved)
    assert token == Token(2, 1)
    assert scene.commit(batch(0, 10, 20, task=moved.task, token=Token(2, 1)), by="W2") == (
        Error.NONE,
    )


def test_a_zombie_is_refused_even_with_what_it_last_committed(scene: Scene) -> None:
    scene.decider.join("W2")
    scene.decider.settle()
    assert resource("A-0") in scene.decider.current("W1").assigned
    assert scene.decider.current("W2").assigned.keys() <= resources("A A-1")
    assert scene.commit(batch(0, None, 10), by="W2") == (Error.FENCED,)


def test_one_message_can_not_move_one_partition_twice_from_the_same_offset(scene: Scene) -> None:
    verdicts = scene.commit(batch(0, None, 10), batch(0, None, 10, task=1))
    assert verdicts == (Error.NONE, Error.FENCED)


def test_one_message_can_carry_one_batch_after_the_other(scene: Scene) -> None:
    assert scene.commit(batch(0, None, 10), batch(1, 10, 20)) == (Error.NONE, Error.NONE)
    assert scene.ledger.offset("A", FILE) == {"row": 20}


def test_one_message_with_one_batch_twice_counts_it_once(scene: Scene) -> None:
    assert scene.commit(batch(0, None, 10), batch(0, None, 10)) == (Error.NONE, Error.NONE)
    only = batch(0, 0, 0).commit_id
    assert scene.ledger.progress("A", 0) == TaskProgress(only, 1, 10, 8, 80, 5, filled=only)


REFUSED: dict[str, tuple[str, Commit, str]] = {
    "not-the-holder": ("W2", batch(5, 10, 20), "W2 does not hold A-0"),
    "an-old-token": (
        "W1",
        batch(5, 10, 20, token=Token(0, 1)),
        "token 0-1 of A-0 is not the current 1-1",
    ),
    "an-old-batch": ("W1", batch(3, 10, 20), "batch 3 of A-0 is not newer than 4"),
    "a-gap": ("W1", batch(5, 12, 20), "{'bucket': 1} is logged at {'row': 10}, not at {'row': 12}"),
}


@pytest.mark.parametrize(("by", "commit", "found"), REFUSED.values(), ids=REFUSED)
def test_a_commit_that_is_fenced_does_not_count_and_is_told_where_to_go_on(
    scene: Scene, by: str, commit: Commit, found: str
) -> None:
    scene.commit(batch(4, None, 10))
    end = (
        "the batch does not count: stop the task, which starts again from the logged offset where"
        " it is assigned"
    )
    verdict = CommitVerdict(commit.commit_id, Error.FENCED, f"{found}; {end}")
    assert scene.decide(CommitOffsets("connect", by, (commit,))) == CommitDecision(
        (), CommitReply((verdict,))
    )


def test_what_is_published_is_buried_once(scene: Scene) -> None:
    first = batch(0, None, 10)
    scene.commit(first)
    done = CommitOffsets("connect", "W1", (), (first.commit_id,))
    assert scene.decide(done).records == (Tombstone(Committed, commit_key(first.commit_id)),)
    assert scene.decide(done).records == ()
    assert scene.ledger.offset("A", FILE) == {"row": 10}
