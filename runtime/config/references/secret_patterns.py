"""Hides what looks like a secret in any text, also one that no config is known to have."""

import re
from typing import Final

from ....actors.settings import CONFIDENTIAL_NAMES, HIDDEN

_SECRETS: Final = (
    (re.compile(r"(://[^/\s:@\"']*):[^/\s@\"']+@"), rf"\1:{HIDDEN}@"),
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\bfl_[A-Za-z0-9_-]{16,}"), HIDDEN),
    (
        re.compile(
            # A limit to the rest of a name: there may be a word wherever another one is looked for.
            rf"((?:{CONFIDENTIAL_NAMES})[\w.-]{{0,64}}\\*[\"']?"
            r"\s*[=:]\s*)(\\*\"[^\"]*\"|'[^']*'|[^\s,;&\"'{}\[\]]+)",
            re.IGNORECASE,
        ),
        rf'\1"{HIDDEN}"',
    ),
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)", re.S),
        HIDDEN,
    ),
)
"""What looks like a secret in a text, and what is written instead."""


def redact(text: str) -> str:
    """Return a text without what looks like a secret."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
