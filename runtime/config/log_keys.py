"""The settings of a node's logs."""

from dataclasses import dataclass
from typing import Final

from ...actors.door.log_format import FILE, JSON, STDOUT, TEXT, LogOutput
from ...actors.settings import word
from .setting import Domain, setting

_LEVEL: Final = word("DEBUG", "INFO", "WARNING", "ERROR")


def _log_level(text: str) -> str:
    return str(_LEVEL(text.upper()))


LOG_LEVEL: Final = Domain(_log_level, "DEBUG, INFO, WARNING or ERROR")
LOG_FORMAT: Final = Domain(word(TEXT, JSON), "text or json")
LOG_TO: Final = Domain(word(FILE, STDOUT), "file or stdout")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The settings of all logs of a node."""

    log_level: str = setting(LOG_LEVEL, "INFO", "The lowest level of messages in the logs.")
    log_format: str = setting(
        LOG_FORMAT, TEXT, "How lines of the logs are written: as text, or each as a JSON object."
    )
    log_to: str = setting(
        LOG_TO,
        FILE,
        "Where all processes of the node log: file (in logs/ of data.dir), or stdout of"
        " `fairlead up`, for containers.",
    )

    def log_output(self) -> LogOutput:
        """Return what the node's processes log."""
        return LogOutput(self.log_level, self.log_format, self.log_to)
