"""Redacts secret values in logs, errors and reports.

A text may contain a secret in many spellings: as it is, escaped as in a literal of Python, Java or
JSON, URL- or HTML-encoded, as base64 or hexadecimal digits, broken over lines, only one of its
lines, in capitals, or from its end to its beginning, as functions of SQL write it. Each is replaced
by what the config shows for the value. For a value of more than `_LONGEST_SPELLED` characters, and
where a config has many, only the usual spellings are searched.
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
"""The maximum length of all values of a config together: building their patterns takes 3 s."""
_LONGEST_SPELLED: Final = 1_024
"""The maximum length of a value that is searched in each spelling, and broken over lines."""
_MOST_SPELLED: Final = 2_048
"""The maximum length of all such values of a config together, the shortest first."""
_BREAK: Final = r"(?:[ \t]*\\?\r?\n[ \t]*)?"
_NEVER: Final = r"(?!)"
_PLAIN: Final = frozenset(string.ascii_letters + string.digits)
_NAMED: Final = {"\n": "n", "\r": "r", "\t": "t"}


class Redaction:
    """The known secrets of a process, and their redaction in texts; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shown: dict[str, str] = {}
        """The replacement of each secret."""
        self._by_secret: dict[str, re.Pattern[str]] = {}
        self._patterns: tuple[tuple[re.Pattern[str], str], ...] = ()
        """The pattern of each secret with its replacement, the longest secret first."""

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Add secrets, each with its replacement; they are never removed."""
        with self._lock:
            new = {each: secrets[each] for each in secrets if each not in self._shown}
            self._shown.update(new)
            spelled = 0
            for secret in sorted(new, key=len):
                if len(secret) < SHORTEST:
                    continue
                spelled += len(secret)
                is_spelled = len(secret) <= _LONGEST_SPELLED and spelled <= _MOST_SPELLED
                self._by_secret[secret] = _pattern(secret, is_spelled=is_spelled)
            if new:
                longest_first = sorted(self._by_secret, key=len, reverse=True)
                self._patterns = tuple(
                    (self._by_secret[secret], self._shown[secret]) for secret in longest_first
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
def _pattern(secret: str, *, is_spelled: bool) -> re.Pattern[str]:
    lines = [line.strip() for line in secret.splitlines()]
    pieces = [secret, *(line for line in lines if len(line) >= SHORTEST_LINE)]
    if is_spelled:
        pieces += [secret.upper(), secret.lower(), secret[::-1]]  # such as ß, which becomes SS
    pieces = [
        each for n, each in enumerate(pieces) if each.lower() not in map(str.lower, pieces[:n])
    ]
    spell, between = (_spellings, _BREAK) if is_spelled else (_usual_spellings, "")
    spelled = [between.join(map(spell, piece)) for piece in pieces]
    return re.compile(f"(?i:{'|'.join(spelled)})|{'|'.join(_encoded(secret)) or _NEVER}")


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
