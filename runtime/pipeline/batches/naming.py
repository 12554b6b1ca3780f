"""Names of batches, files and bad rows in messages."""

from collections.abc import Mapping, Sequence
from typing import Final

from ....events.commits import Commit, CommitId, Manifest, Part

_MOST_NAMED: Final = 3


def describe_unpublished(commits: Sequence[Commit]) -> str:
    """Return the first few unpublished batches, with their files."""
    batches = [_batch_with_files(each) for each in commits[:_MOST_NAMED]]
    return _join(batches, len(commits), "; ")


def describe_batch(commit_id: CommitId, manifest: Manifest) -> str:
    """Return a committed batch with its number of rows."""
    connector, task, token, batch = commit_id
    return f"batch {batch} of {connector}-{task} (token {token}, {manifest.rows} rows)"


def describe_parts(parts: Sequence[Part]) -> str:
    """Return the first few files of a manifest."""
    return _join([each.path for each in parts[:_MOST_NAMED]], len(parts), ", ")


def describe_position(position: Mapping[str, object]) -> str:
    """Return where a bad row is, in one line."""
    return ", ".join(f"{name} {each}" for name, each in position.items())


def _batch_with_files(commit: Commit) -> str:
    """Return a batch with its files, which manifests of older releases do not have."""
    parts = commit.manifest.parts
    files = f": {describe_parts(parts)}" if parts else ""
    return f"{describe_batch(commit.commit_id, commit.manifest)}{files}"


def _join(names: Sequence[str], count: int, between: str) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{between.join(names)}{more}"
