"""What goes wrong in the code of others, in words."""

import traceback
from pathlib import Path

USERS_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
"""All that a call into it may raise: it may call `sys.exit`, too."""

LONGEST_TEXT = 500


def told(error: BaseException) -> str:
    """Return an error as a line: its type, what it says, and where it was raised."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001  # it is somebody else's error
        said = "(it does not say)"
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    text = " ".join(text[:LONGEST_TEXT].encode(errors="backslashreplace").decode().split())
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
