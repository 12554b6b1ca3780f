"""How batches that wait to be published are named to people."""

from collections.abc import Sequence
from typing import Final

from ....events.commits import Commit, CommitId, Manifest, Part

_MOST_NAMED: Final = 3


def describe_unpublished(commits: Sequence[Commit]) -> str:
    """Name batches that wait to be published, with their files."""
    told = [_with_files(each) for each in commits[:_MOST_NAMED]]
    return _listed(told, len(commits), "; ")


def describe_batch(commit_id: CommitId, manifest: Manifest) -> str:
    """Name a batch that counts, with its rows."""
    connector, task, token, batch = commit_id
    return f"batch {batch} of {connector}-{task} (token {token}, {manifest.rows} rows)"


def describe_parts(parts: Sequence[Part]) -> str:
    """Name the first few parts of a manifest."""
    return _listed([each.path for each in parts[:_MOST_NAMED]], len(parts), ", ")


def _with_files(commit: Commit) -> str:
    """Name a batch with its files; manifests of older releases do not name them."""
    parts = commit.manifest.parts
    files = f": {describe_parts(parts)}" if parts else ""
    return f"{describe_batch(commit.commit_id, commit.manifest)}{files}"


def _listed(some: Sequence[str], count: int, between: str) -> str:
    more = f" and {count - len(some)} more" if count > len(some) else ""
    return f"{between.join(some)}{more}"
