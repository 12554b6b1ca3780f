"""Whether a worker can take work yet, as its assignor metadata says it.

A worker joins before its engine is warm, with capacity 0, and raises it to 1 once a first
job has run. The metadata is a JSON object: `{"capacity": 0}` or `{"capacity": 1}`.
"""

import json
from typing import cast

COLD = b'{"capacity":0}'
"""The metadata of a worker that is not to be given work yet, or no longer."""

WARM = b'{"capacity":1}'
"""The metadata of a worker that can run what it is given."""


def is_warm(metadata: bytes) -> bool:
    """Tell whether a member can take work: all do but those that plainly say capacity 0.

    Metadata that is missing, unreadable or of another shape counts as capacity 1: it may come
    from a worker of another make, and a worker without work helps nobody.
    """
    if not metadata:
        return True
    try:
        document: object = json.loads(metadata)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested beyond reason
        return True
    if not isinstance(document, dict):
        return True
    capacity = cast("dict[str, object]", document).get("capacity", 1)
    # `false` and `0.0` equal 0 in Python, and are no capacity.
    return not (type(capacity) is int and capacity == 0)
