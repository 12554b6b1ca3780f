"""What a plugin gives back is looked at before it is relied on, or written down for ever.

What the log cannot hold would be refused only by the group, which knows no plugin to blame.
"""

import json
import math
from collections.abc import Mapping
from typing import Final, cast

from ....events.commits import Document, Manifest
from ..connectors.errors import ContractBroken

LONGEST_NOTE: Final = 4 << 10
"""The most bytes of a manifest's note, as JSON."""

_LARGEST: Final = (1 << 63) - 1


def check_manifest(manifest: Manifest) -> None:
    """Raise `ContractBroken` if what `stage` returned cannot be committed."""
    if flaw := flaw_in(manifest.note, LONGEST_NOTE):
        raise ContractBroken(f"stage: the manifest's note {flaw}")


def flaw_in(document: Document, longest: int) -> str:
    """Return what keeps a document out of the log, or from being found there again; "": nothing."""
    given = cast("object", document)
    if not isinstance(given, Mapping):
        return f"is a {type(given).__name__}, not a flat object"
    for key, value in cast("Mapping[object, object]", document).items():
        if flaw := _flaw_in_text(key) if isinstance(key, str) else "is no text":
            return f"has a key that {flaw}"
        if flaw := _flaw_in_value(value):
            return f"has under {key!r} a value that {flaw}"
    size = len(json.dumps(dict(document), ensure_ascii=False).encode())
    return f"takes {size} bytes: {longest} are allowed" if size > longest else ""


def _flaw_in_value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return _flaw_in_text(value)
    if isinstance(value, int):
        return "" if -_LARGEST <= value <= _LARGEST else "has more than 64 bits"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"is {value}: only finite numbers equal themselves"
    return f"is a {type(value).__name__}, not a text, a number, true, false or null"


def _flaw_in_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not encodable: it holds a lone surrogate"
    return ""
