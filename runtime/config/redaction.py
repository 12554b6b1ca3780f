"""Keeping what secrets stand for out of the text that leaves a process.

A text may quote a value in many spellings: as it is, escaped as in a literal of Python, Java or
JSON, encoded for a URL or for HTML, as base64 or in hexadecimal digits, broken over lines, and
if it has lines itself, one of them alone. Each becomes what stands for the value in its config.
Of a value of more than a thousand letters only the usual spellings are looked for.
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
"""Letters of the shortest value that is hidden: shorter ones turn up everywhere by chance."""
SHORTEST_LINE: Final = 8
"""Letters of the shortest line that is hidden apart from the others of its value."""
SHORTEST_ENCODED: Final = 8
"""Letters of the shortest value that is looked for as base64 and in hexadecimal digits."""
LONGEST: Final = 32_768
"""Letters of the longest value that can be hidden: what it takes grows with them, to 3 s."""
_LONGEST_SPELLED: Final = 1_024
"""Letters of the longest value that is looked for in each spelling, and broken over lines."""
_BREAK: Final = r"(?:[ \t]*\\?\r?\n[ \t]*)?"
_PLAIN: Final = frozenset(string.ascii_letters + string.digits)
_NAMED: Final = {"\n": "n", "\r": "r", "\t": "t"}


class Redaction:
    """The secrets that a process has come to know; any thread may learn, and hide."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shown: dict[str, str] = {}
        """What to show in place of each secret."""
        self._patterns: tuple[tuple[re.Pattern[str], str], ...] = ()
        """What finds each secret in its usual spellings, the longest first, and what is shown."""

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Take values, each with what is to be read in its place; they are never forgotten."""
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
        """Return all secrets that it knows by now, each with what is shown in its place."""
        with self._lock:
            return dict(self._shown)

    def hide(self, text: str) -> str:
        """Return a text in which no spelling of a known value is left."""
        for pattern, shown in self._patterns:
            text = shown.join(pattern.split(text))  # it has no groups
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        """Hide what a record of a log holds, its traceback included; `logging` calls it."""
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
        """Hide what this process writes to its logs from now on."""
        for handler in logging.getLogger().handlers:
            handler.addFilter(self)


@lru_cache(maxsize=128)  # each task config of a connector has the same ones
def _pattern(secret: str) -> re.Pattern[str]:
    lines = [line.strip() for line in secret.splitlines()]
    pieces = [secret, *(line for line in lines if len(line) >= SHORTEST_LINE)]
    is_long = len(secret) > _LONGEST_SPELLED
    spell, between = (_usual_spellings, "") if is_long else (_spellings, _BREAK)
    spelled = [between.join(map(spell, piece)) for piece in dict.fromkeys(pieces)]
    return re.compile("|".join([*spelled, *_encoded(secret)]))


def _usual_spellings(letter: str) -> str:
    """Return a pattern for one letter as it is, in a literal, or in a URL."""
    if letter in _PLAIN:
        return letter
    percent = "".join(f"%{octet:02x}" for octet in letter.encode(errors="surrogatepass"))
    named = rf"\\+{_NAMED[letter]}|" if letter in _NAMED else ""
    return rf"(?:{named}\\*{re.escape(letter)}|(?i:{percent}))"


def _spellings(letter: str) -> str:
    """Return a pattern for one letter, however it is escaped."""
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
    """Yield patterns for a value in other alphabets, wherever in a longer text it begins."""
    octets = secret.encode(errors="surrogatepass")
    if len(octets) < SHORTEST_ENCODED:
        return
    yield rf"(?i:{octets.hex('|').replace('|', '[ :]?')})"
    for before in range(3):
        whole = (before + len(octets)) // 3 * 4
        begin = -(-before * 4 // 3)  # what comes before has a part in the letters up to here
        text = b64encode(bytes(before) + octets).decode()[begin:whole]
        yield re.escape(text).replace(r"\+", "[+-]").replace("/", "[/_]")
