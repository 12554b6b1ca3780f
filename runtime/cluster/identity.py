"""Which node a data folder is of: what its clients ask for, and what the node answers with.

An identity is `CLUSTER/NODE`. The cluster is known by its key, the node by its own id and by the
run folder itself: a copy of a data folder has both files, but is another folder.
"""

from base64 import urlsafe_b64encode
from hashlib import blake2b
from pathlib import Path
from typing import Final

HEADER: Final = "Fairlead-Node"
"""The header in which each answer of the REST interface says whose it is."""

KEY: Final = "key"
NODE_ID: Final = "node.id"
_CLUSTER_ID_BYTES: Final = 16  # as long as Kafka's
_NODE_BYTES: Final = 8


def cluster_id(key: bytes) -> str:
    """Return what a cluster is known by to others, which says nothing of its key."""
    digest = blake2b(digest_size=_CLUSTER_ID_BYTES, key=key, person=b"fairlead id 1").digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def folder_number(run_folder: Path) -> int:
    """Return what tells a run folder from its copies, 0 if there is none."""
    try:
        return run_folder.stat().st_ino
    except OSError:
        return 0


def identity_of(run_folder: Path) -> str:
    """Return the identity of the node that runs here or has run here, "" if none has.

    Raises `OSError` if its files cannot be read.
    """
    try:
        key = (run_folder / KEY).read_bytes()
        node_id = (run_folder / NODE_ID).read_bytes()
    except FileNotFoundError:
        return ""
    content = b"%d %s" % (folder_number(run_folder), node_id)
    node = blake2b(content, digest_size=_NODE_BYTES, key=key, person=b"fairlead node 1")
    return f"{cluster_id(key)}/{node.hexdigest()}"
