"""Assignment of files to tasks by hash buckets.

A file's bucket depends only on its relative path. Another number of tasks moves files between
tasks, but offsets belong to files and are kept.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

BUCKETS = 256
_TOLERANCE = 0.05

Share = frozenset[int]
"""The buckets of one task."""

EVERYTHING: Share = frozenset(range(BUCKETS))


def bucket_of(path: str) -> int:
    """Return a file's bucket, the same on every machine and in every release."""
    return blake2b(path.encode(), digest_size=1).digest()[0]


def deal(paths: Iterable[str], tasks: int) -> Sequence[Share]:
    """Distribute all buckets over at most `BUCKETS` tasks, each with about as many files.

    It starts from a fixed distribution and moves as few buckets as possible until the loads differ
    by at most 5 %, if the buckets allow that: a few more files change little.
    """
    tasks = min(tasks, BUCKETS)
    files = Counter(map(bucket_of, paths))
    shares = [set(range(task, BUCKETS, tasks)) for task in range(tasks)]
    loads = [sum(files[bucket] for bucket in share) for share in shares]
    spread = max(1, int(_TOLERANCE * files.total() / tasks))
    while True:
        full = loads.index(max(loads))
        light = loads.index(min(loads))
        gap = loads[full] - loads[light]
        bucket = _best_move(files, shares[full], gap)
        if gap <= spread or bucket is None:
            return [frozenset(share) for share in shares]
        shares[full].remove(bucket)
        shares[light].add(bucket)
        loads[full] -= files[bucket]
        loads[light] += files[bucket]


def _best_move(files: Counter[int], share: set[int], gap: int) -> int | None:
    movable = [bucket for bucket in share if 0 < files[bucket] < gap]
    return min(movable, key=lambda each: (abs(gap - 2 * files[each]), each), default=None)


def spell(share: Share) -> str:
    """Return a share as text: `0-3,7`."""
    runs: list[list[int]] = []
    for bucket in sorted(share):
        if runs and runs[-1][-1] == bucket - 1:
            runs[-1][-1] = bucket
        else:
            runs.append([bucket, bucket])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def read_share(text: str) -> Share:
    """Parse a share; raises `ValueError`."""
    share: set[int] = set()
    for run in filter(None, text.split(",")):
        first, _, last = run.partition("-")
        share.update(range(int(first), int(last or first) + 1))
    if not share <= set(range(BUCKETS)):
        raise ValueError(f"no such bucket in {text!r}")
    return frozenset(share)
