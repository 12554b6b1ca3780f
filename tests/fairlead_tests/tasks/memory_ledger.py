"""An offset log in memory with the rules of the real one, and with injected failures."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from fairlead.events.commits import Commit, CommitId, Document, TaskProgress, identity
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.tasks.ledger import Fenced, LedgerUnavailable, Unpublished


class MemoryLedger:
    """Accepts a commit iff its token is current and each advance starts at the logged offset.

    `faults` are used up one per commit: `away` refuses to answer and does nothing, `lost` does
    its work and loses the answer. `away_for` is how many questions it will not answer.
    """

    cluster_id = "a-cluster"
    place = "a-place"

    def __init__(self) -> None:
        self.tokens: dict[Resource, Token] = {}
        self.logged: dict[str, dict[str, Document]] = {}
        self.accepted: dict[CommitId, Commit] = {}
        self.to_publish: list[CommitId] = []
        self.faults: deque[str] = deque()
        self.away_for = 0
        self.before_commit: Callable[[], None] = lambda: None
        self.lock = threading.Lock()

    def offsets(self, connector: str) -> Mapping[str, Document]:
        with self.lock:
            return dict(self.logged.get(connector, {}))

    def settled(self, connector: str) -> Mapping[str, Document]:
        with self.lock:
            found = dict(self.logged.get(connector, {}))
            for each in self.to_publish:
                for advance in self.accepted[each].advances:
                    found.pop(identity(advance.partition), None)
            return found

    def unpublished(self, connector: str, task: int) -> Sequence[Unpublished]:
        with self.lock:
            if self.away_for:
                self.away_for -= 1
                raise LedgerUnavailable("the coordinator is away")
            mine = [each for each in self.to_publish if each[:2] == (connector, task)]
            return [Unpublished(self.accepted[each], self._sequence(each)) for each in mine]

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        with self.lock:
            mine = [each for each in self.accepted if each[:2] == (connector, task)]
            filled = [each for each in mine if self.accepted[each].manifest.files]
            last = max(filled, default=None)
            return TaskProgress(max(mine), len(mine), 0, 0, 0, 0, None, last) if mine else None

    def commit(self, commit: Commit) -> int | None:
        self.before_commit()
        with self.lock:
            fault = self.faults.popleft() if self.faults else ""
            if fault == "away":
                raise LedgerUnavailable("the coordinator is away")
            self._accept(commit)
            if fault == "lost":
                raise LedgerUnavailable("no answer within 1500 ms")
            is_left = commit.commit_id in self.to_publish
            return self._sequence(commit.commit_id) if is_left else None

    def published(self, commit_id: CommitId) -> None:
        with self.lock:
            if commit_id in self.to_publish:
                self.to_publish.remove(commit_id)

    def grant(self, resource: Resource, token: Token) -> None:
        with self.lock:
            self.tokens[resource] = token

    def _accept(self, commit: Commit) -> None:
        commit_id = commit.commit_id
        if commit_id in self.accepted:
            assert self.accepted[commit_id] == commit, "a batch number was used twice"
            return
        current = self.tokens.get(Resource(commit_id.connector, commit_id.task))
        if current is not None and commit_id.token != current:
            raise Fenced(f"token {commit_id.token} is not current: {current} is")
        logged = self.logged.setdefault(commit_id.connector, {})
        for advance in commit.advances:
            if logged.get(identity(advance.partition)) != advance.start:
                raise Fenced(f"{advance.partition} does not start at the logged offset")
        for advance in commit.advances:
            assert advance.end is not None
            logged[identity(advance.partition)] = advance.end
        self.accepted[commit_id] = commit
        if not commit.manifest.is_empty:
            self.to_publish.append(commit_id)

    def _sequence(self, commit_id: CommitId) -> int:
        return 10 * list(self.accepted).index(commit_id)
