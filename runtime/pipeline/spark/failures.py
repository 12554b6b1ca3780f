# pyright: basic
"""What went wrong inside Spark, in the words of whoever failed."""

import re
from collections.abc import Callable

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

_LONGEST = 2000
_JAVA_CLASS = re.compile(r"^(?:[a-z_$][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable): ")
_ABORTED = re.compile(r"Lost task .*?: (.*?)(?:\n\tat |\n\nDriver stacktrace|\Z)", re.DOTALL)

_NOISE = ("\n\nJVM stacktrace:", "\n\tat ", ";\n'", "\n SQLSTATE: 38000")
"""Where stack traces, unresolved plans and the state of every Python error begin."""

_GONE = frozenset({"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"})
"""How gRPC calls it that a call has no answer."""


def lost_touch(error: Exception, text: str | None) -> bool:
    """Tell whether an error may come from a JVM that is going or gone."""
    if isinstance(error, Py4JJavaError | PySparkException):
        return "SparkContext was shut down" in (text or "") or _is_of_session(error)
    return any(
        isinstance(each, Py4JError | ConnectionError | EOFError)
        for each in (error, error.__cause__)  # a plugin's guard has taken it for the plugin's own
    )


def session_is_gone(error: BaseException | None) -> bool:
    """Tell whether an error, or what it came of, is that a server's session is gone."""
    while error is not None:
        if isinstance(error, PySparkException) and _is_of_session(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_of_session(error: Exception) -> bool:
    """Tell whether an error says that a session of Spark Connect, or its server, is gone."""
    code = getattr(getattr(error, "_grpc_status_code", None), "name", "")
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return code in _GONE or (condition or "").startswith(("INVALID_HANDLE.", "NO_ACTIVE_SESSION"))


def failure_text(error: Exception, hide: Callable[[str], str] = str) -> str | None:
    """Return why Spark failed, without stack traces; None if the error is not Spark's.

    `hide` takes secrets out before the text is cut: half of one would not be known again.
    """
    if isinstance(error, Py4JJavaError):
        text = _innermost(error)
    elif isinstance(error, PySparkException):
        text = _with_cause(error)
    elif isinstance(error, Py4JError):
        text = str(error)
    else:
        return None
    return _plain(hide(text))[:_LONGEST]


def _innermost(error: Py4JJavaError) -> str:
    """Return the message of the first cause, as the exceptions around it complete it."""
    thrown, messages = error.java_exception, list[str]()
    try:
        while thrown is not None:
            messages.append(str(thrown.getMessage() or thrown.toString()))
            thrown = thrown.getCause()
    except Py4JError:
        return str(error.errmsg)
    return _completed(messages)


def _completed(messages: list[str]) -> str:
    """Return the last message, or an earlier one that ends with it and says more.

    `Exec failed, error: 2` is the cause of `Cannot run program "x": Exec failed, error: 2`.
    """
    told = messages[-1]
    for outer in reversed(messages[:-1]):
        before = outer.removesuffix(told)
        if before != outer and "\n" not in before and not _JAVA_CLASS.fullmatch(before):
            told = outer
    return told


def _with_cause(error: PySparkException) -> str:
    # That of a server's error may end with the stack, and so hold a cause that is cut off later.
    text = (getattr(error, "_desc", None) or str(error)).partition(_NOISE[0])[0]
    cause = error
    while isinstance(inner := getattr(cause, "_cause", None), PySparkException):
        cause = inner
    root = getattr(cause, "_desc", None)
    if not root and (there := _causes_there(error)):
        root = _completed(there)
        if _ABORTED.search(text):  # the scheduler tells the failure of a task, not why it failed
            return root
    return text if (root or "") in text else f"{text.rstrip(':')}: {root}"


def _causes_there(error: PySparkException) -> list[str]:
    """Return the messages of the causes on a server of Spark Connect, the first one last."""
    stack = str(getattr(error, "_stacktrace", None) or "")
    told = [each.partition("\n\tat ")[0].strip() for each in stack.split("\nCaused by: ")[1:]]
    return [_JAVA_CLASS.sub("", each) for each in told]


def _plain(text: str) -> str:
    """Cut what surrounds the reason: traces of Python workers, of Java, of the scheduler."""
    if aborted := _ABORTED.search(text):
        text = aborted[1]
    if "Traceback (most recent call last)" in text:
        text = _last_raised(text)
    for noise in _NOISE:
        text = text.split(noise)[0]
    return _JAVA_CLASS.sub("", text.strip())


def _last_raised(text: str) -> str:
    """Return the end of a Python traceback: `ValueError: bad row` and what it adds below."""
    lines = text.rstrip().splitlines()
    frames = [n for n, line in enumerate(lines) if line.startswith("  ")]
    return "\n".join(lines[frames[-1] + 1 :]) if frames and lines[frames[-1] + 1 :] else lines[-1]
