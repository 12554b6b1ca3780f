# pyright: basic
"""The reasons of Spark's errors, without stack traces, and errors of a lost JVM or session."""

import re
from collections.abc import Callable

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

_LONGEST = 2000
_JAVA_CLASS = re.compile(r"^(?:[a-z_$][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable): ")
_ABORTED = re.compile(r"Lost task .*?: (.*?)(?:\n\tat |\n\nDriver stacktrace|\Z)", re.DOTALL)

_NOISE = ("\n\nJVM stacktrace:", "\n\tat ", ";\n'", "\n SQLSTATE: 38000")
"""The beginnings of stack traces, unresolved plans, and the SQL state of all Python errors."""

_STAGE_FAILED = "Job aborted due to stage failure"
_NO_ANSWER = frozenset({"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"})
"""The gRPC status codes of a call without an answer."""


def may_be_lost_jvm(error: Exception, text: str | None) -> bool:
    """Return whether an error may be the result of a JVM or session that ends."""
    if isinstance(error, Py4JJavaError | PySparkException):
        return "SparkContext was shut down" in (text or "") or _is_lost_session(error)
    return any(
        isinstance(each, Py4JError | ConnectionError | EOFError)
        for each in (error, error.__cause__)  # a guard may have wrapped it as the plugin's error
    )


def is_of_spark_task(error: Exception) -> bool:
    """Return whether a job failed because one of its tasks did, and was not cancelled, say.

    If a Python worker is killed, there are many texts for it, such as an `EOFException`.
    """
    is_of_spark = isinstance(error, Py4JJavaError | PySparkException)
    return is_of_spark and _STAGE_FAILED in str(error)


def session_is_gone(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is the loss of a Spark Connect session."""
    while error is not None:
        if isinstance(error, PySparkException) and _is_lost_session(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_lost_session(error: Exception) -> bool:
    """Return whether an error is the loss of a Spark Connect session or its server."""
    code = getattr(getattr(error, "_grpc_status_code", None), "name", "")
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return code in _NO_ANSWER or (condition or "").startswith(
        ("INVALID_HANDLE.", "NO_ACTIVE_SESSION")
    )


def failure_text(error: Exception, hide: Callable[[str], str] = str) -> str | None:
    """Return why Spark failed, without stack traces; None if the error is not Spark's.

    `hide` masks secrets before the text is truncated, since it would not recognise half a secret.
    """
    if isinstance(error, Py4JJavaError):
        text = _innermost(error)
    elif isinstance(error, PySparkException):
        text = _with_cause(error)
    elif isinstance(error, Py4JError):
        text = str(error)
    else:
        return None
    return _strip_noise(hide(text))[:_LONGEST]


def _innermost(error: Py4JJavaError) -> str:
    """Return the message of the root cause, or of an outer exception that completes it."""
    thrown, messages = error.java_exception, list[str]()
    try:
        while thrown is not None:
            messages.append(str(thrown.getMessage() or thrown.toString()))
            thrown = thrown.getCause()
    except Py4JError:
        return str(error.errmsg)
    return _most_complete(messages)


def _most_complete(messages: list[str]) -> str:
    """Return the last message, or an earlier one that ends with it and adds details.

    `Exec failed, error: 2` is the cause of `Cannot run program "x": Exec failed, error: 2`.
    """
    message = messages[-1]
    for outer in reversed(messages[:-1]):
        before = outer.removesuffix(message)
        if before != outer and "\n" not in before and not _JAVA_CLASS.fullmatch(before):
            message = outer
    return message


def _with_cause(error: PySparkException) -> str:
    # A server's description may end with the stack trace, whose causes are cut off later.
    text = (getattr(error, "_desc", None) or str(error)).partition(_NOISE[0])[0]
    cause = error
    while isinstance(inner := getattr(cause, "_cause", None), PySparkException):
        cause = inner
    root = getattr(cause, "_desc", None)
    if not root and (messages := _server_causes(error)):
        root = _most_complete(messages)
        if _ABORTED.search(text):  # the scheduler reports a failed task without the reason
            return root
    return text if (root or "") in text else f"{text.rstrip(':')}: {root}"


def _server_causes(error: PySparkException) -> list[str]:
    """Return the messages of the causes on a Spark Connect server, the root cause last."""
    stack = str(getattr(error, "_stacktrace", None) or "")
    causes = [each.partition("\n\tat ")[0].strip() for each in stack.split("\nCaused by: ")[1:]]
    return [_JAVA_CLASS.sub("", each) for each in causes]


def _strip_noise(text: str) -> str:
    """Remove the stack traces of Python workers, Java and the scheduler around a reason."""
    if aborted := _ABORTED.search(text):
        text = aborted[1]
    if "Traceback (most recent call last)" in text:
        text = _last_raised(text)
    for noise in _NOISE:
        text = text.split(noise)[0]
    return _JAVA_CLASS.sub("", text.strip())


def _last_raised(text: str) -> str:
    """Return the end of a Python traceback: `ValueError: bad row` and the lines below it."""
    lines = text.rstrip().splitlines()
    frames = [n for n, line in enumerate(lines) if line.startswith("  ")]
    return "\n".join(lines[frames[-1] + 1 :]) if frames and lines[frames[-1] + 1 :] else lines[-1]
