"""Redacts secret values in logs, errors and reports.

A text may contain a secret in many spellings: as it is, escaped as in a literal of Python, Java or
JSON, URL- or HTML-encoded, as base64 or hexadecimal digits, broken over lines, or only one of its
lines. Each is replaced by what the config shows for the value. For a value of more than
`_LONGEST_SPELLED` characters only the usual spellings are searched.
"""

import logging
import re
import string
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from threading import Lock
from typing import Final

SHORTEST: Final = 4
"""The minimum length of a redacted value: shorter ones occur in texts by chance. In characters."""
SHORTEST_LINE: Final = 8
"""The minimum length of a single line of a value that is redacted."""
SHORTEST_ENCODED: Final = 8
"""The minimum length of a value that is searched as base64 and hexadecimal digits."""
LONGEST: Final = 32_768
"""The maximum length of a value that can be redacted: building its pattern takes up to 3 s."""
_LONGEST_SPELLED: Final = 1_024
"""The maximum length of a value that is searched in each spelling, and broken over lines."""
_BREAK: Final = r"(?:[ \t]*\\?\r?\n[ \t]*)?"
_PLAIN: Final = frozenset(string.ascii_letters + string.digits)
_NAMED: Final = {"\n": "n", "\r": "r", "\t": "t"}


class Redaction:
    """The known secrets of a process, and their redaction in texts; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shown: dict[str, str] = {}
        """The replacement of each secret."""
        self._patterns: tuple[tuple[re.Pattern[str], str], ...] = ()
        """The pattern of each secret with its replacement, the longest secret first."""

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Add secrets, each with its replacement; they are never removed."""
        with self._lock:
            new = {each: secrets[each] for each in secrets if each not in self._shown}
            self._shown.update(new)
            longest_first = sorted(self._shown, key=len, reverse=True)
            if new:
                self._patterns = tuple(
                    (_pattern(secret), self._shown[secret])
                    for secret in longest_first
                    if len(secret) >= SHORTEST
                )

    def known(self) -> Mapping[str, str]:
        """Return all known secrets with their replacements."""
        with self._lock:
            return dict(self._shown)

    def hide(self, text: str) -> str:
        """Replace all spellings of known secrets in a text."""
        for pattern, shown in self._patterns:
            text = shown.join(pattern.split(text))  # the pattern has no groups
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a log record, including its traceback; a `logging` filter."""
        text = record.getMessage()
        hidden = self.hide(text)
        if hidden != text:
            record.msg, record.args = hidden, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.hide(record.exc_text)
        return True

    def watch_logs(self) -> None:
        """Redact all logs of this process from now on."""
        for handler in logging.getLogger().handlers:
            handler.addFilter(self)


@lru_cache(maxsize=128)  # all task configs of a connector have the same secrets
def _pattern(secret: str) -> re.Pattern[str]:
    lines = [line.strip() for line in secret.splitlines()]
    pieces = [secret, *(line for line in lines if len(line) >= SHORTEST_LINE)]
    is_long = len(secret) > _LONGEST_SPELLED
    spell, between = (_usual_spellings, "") if is_long else (_spellings, _BREAK)
    spelled = [between.join(map(spell, piece)) for piece in dict.fromkeys(pieces)]
    return re.compile("|".join([*spelled, *_encoded(secret)]))


def _usual_spellings(letter: str) -> str:
    """Return a pattern for one character as it is, escaped in a literal, or in a URL."""
    if letter in _PLAIN:
        return letter
    percent = "".join(f"%{octet:02x}" for octet in letter.encode(errors="surrogatepass"))
    named = rf"\\+{_NAMED[letter]}|" if letter in _NAMED else ""
    return rf"(?:{named}\\*{re.escape(letter)}|(?i:{percent}))"


def _spellings(letter: str) -> str:
    """Return a pattern for one character in all known escapes."""
    if letter in _PLAIN:
        return letter
    code, octets = ord(letter), letter.encode(errors="surrogatepass")
    percent = "".join(f"%{octet:02x}" for octet in octets)
    slashed = "".join(rf"\\+x{octet:02x}" for octet in octets)
    spellings = [
        *((rf"\\+{_NAMED[letter]}",) if letter in _NAMED else ()),
        rf"\\*{re.escape(letter)}",
        rf"(?i:{percent})",
        rf"(?i:{slashed})",
        rf"(?i:\\+x{code:02x})",
        rf"(?i:\\+u{code:04x})",
        rf"(?i:\\+U{code:08x})",
        rf"(?i:&#0*{code};|&#x0*{code:x};)",
        *((re.escape(escape(letter)),) if escape(letter) != letter else ()),
        *((r"\+",) if letter == " " else ()),
    ]
    return f"(?:{'|'.join(spellings)})"


def _encoded(secret: str) -> Iterator[str]:
    """Yield patterns for a value in hex and in base64, at each of its three alignments."""
    octets = secret.encode(errors="surrogatepass")
    if len(octets) < SHORTEST_ENCODED:
        return
    yield rf"(?i:{octets.hex('|').replace('|', '[ :]?')})"
    for before in range(3):
        whole = (before + len(octets)) // 3 * 4
        begin = -(-before * 4 // 3)  # characters before this depend on the preceding bytes
        text = b64encode(bytes(before) + octets).decode()[begin:whole]
        yield re.escape(text).replace(r"\+", "[+-]").replace("/", "[/_]")
