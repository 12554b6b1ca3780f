"""The identity of a node, `CLUSTER/NODE`: its clients check it in every answer.

The cluster part is derived from the cluster's key. The node part is derived from the node id and
the inode of the run folder, so that a copy of a data folder has another identity.
"""

from base64 import urlsafe_b64encode
from hashlib import blake2b
from pathlib import Path
from typing import Final

HEADER: Final = "Fairlead-Node"
"""The HTTP response header with the identity of the node that answers."""

VERSION_HEADER: Final = "X-Fairlead-Version"
"""The HTTP response header with the version of fairlead: `GET /` tells that of Connect's API."""

KEY: Final = "key"
NODE_ID: Final = "node.id"
_CLUSTER_ID_BYTES: Final = 16  # as long as Kafka's
_NODE_BYTES: Final = 8


def cluster_id(key: bytes) -> str:
    """Return the public id of a cluster: a keyed hash, from which the key cannot be derived."""
    digest = blake2b(digest_size=_CLUSTER_ID_BYTES, key=key, person=b"fairlead id 1").digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def folder_number(run_folder: Path) -> int:
    """Return the inode of a run folder, which its copies do not have; 0 if there is no folder."""
    try:
        return run_folder.stat().st_ino
    except OSError:
        return 0


def identity_of(run_folder: Path) -> str:
    """Return the identity of the node of this run folder; "" before its first start.

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
