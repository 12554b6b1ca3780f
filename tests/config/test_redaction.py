"""What secrets stand for is kept out of text that leaves a process, however it is spelled."""

import html
import json
import logging
from base64 import b64encode
from io import StringIO
from textwrap import wrap
from urllib.parse import quote, quote_plus

import pytest

from fairlead.runtime.config.references.redaction import Redaction

SECRET = "p@ss w/ü'rd\"\\&100%"
REFERENCE = "${file:/run/db.properties:password}"
KEY = (
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n-----END KEY-----"
)


def redaction(secret: str = SECRET) -> Redaction:
    made = Redaction()
    made.learn({secret: REFERENCE})
    return made


SPELLINGS = {
    "as it is": SECRET,
    "for a URL's path": quote(SECRET, safe=""),
    "for a URL's path, slashes kept": quote(SECRET),
    "for a form": quote_plus(SECRET),
    "in small hexadecimal digits": quote(SECRET, safe="").lower(),
    "as Python shows it": repr(SECRET)[1:-1],
    "as Python shows it in ASCII": ascii(SECRET)[1:-1],
    "as Python shows its bytes": repr(SECRET.encode())[2:-1],
    "in JSON": json.dumps(SECRET)[1:-1],
    "in JSON with Unicode": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "in JSON in JSON": json.dumps(json.dumps(SECRET))[3:-3],
    "in HTML": html.escape(SECRET),
    "in base64": b64encode(SECRET.encode()).decode(),
    "in a header": b64encode(f"admin:{SECRET}".encode()).decode(),
    "in hexadecimal digits": SECRET.encode().hex(),
    "as Spark shows bytes": SECRET.encode().hex(" ").upper(),
    "in capitals": SECRET.upper(),
    "in small letters": SECRET.lower(),
    "from its end to its beginning": SECRET[::-1],
    "so, and in capitals": SECRET.upper()[::-1],
    "with each word's first letter as a capital": SECRET.title(),
    "broken over lines": "\n    ".join(SECRET[n : n + 3] for n in range(0, len(SECRET), 3)),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_secret_is_hidden_however_it_is_spelled(spelling: str) -> None:
    told = redaction().hide(f"cannot connect to <{spelling}>: refused")
    assert spelling not in told
    assert REFERENCE in told
    assert told.startswith("cannot connect to <")
    assert told.endswith(">: refused")


def test_the_lines_of_a_secret_are_hidden_apart_from_each_other() -> None:
    hide = redaction(KEY).hide
    assert hide(f"bad key {KEY}!") == f"bad key {REFERENCE}!"
    assert hide(f"bad key {json.dumps(KEY)}!") == f'bad key "{REFERENCE}"!'
    for line in KEY.splitlines():
        assert hide(f"at {line}") == f"at {REFERENCE}"
    wrapped = "\n".join(wrap(KEY.splitlines()[1], 10))
    assert hide(f"at\n{wrapped}\n.") == f"at\n{REFERENCE}\n."


def test_a_secret_within_another_does_not_uncover_the_rest_of_it() -> None:
    made = redaction("hunter2")
    made.learn({"hunter2-and-more": "${env:LONG}"})
    assert made.hide("hunter2-and-more, hunter2") == "${env:LONG}, " + REFERENCE


def test_what_is_too_short_to_be_a_secret_leaves_texts_readable() -> None:
    assert redaction("5").hide("restarts in 0.5 s (1 of 5)") == "restarts in 0.5 s (1 of 5)"


def test_other_text_stays_as_it_is() -> None:
    text = "no row fits; see line 7 of /in/a.csv\n\tat org.apache.spark\n"
    assert redaction().hide(text) == text


def test_a_log_holds_no_secret_in_its_lines_or_tracebacks() -> None:
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(redaction())
    logger = logging.Logger("a logger")
    logger.addHandler(handler)
    try:
        int(SECRET)
    except ValueError:
        logger.exception("login with %s failed (%d)", SECRET, 3)
    assert SECRET not in written.getvalue()
    assert f"login with {REFERENCE} failed (3)" in written.getvalue()
    assert (
        f"ValueError: invalid literal for int() with base 10: '{REFERENCE}'" in written.getvalue()
    )
    assert "Traceback" in written.getvalue()


def test_hiding_takes_no_longer_than_a_text_is_long() -> None:
    hide = redaction("a" * 60 + "!").hide
    assert hide("a " * 50_000).startswith("a a")
    assert hide("a" * 20_000 + "\n" * 20_000).startswith("aaa")


@pytest.mark.timeout(60)
def test_a_long_value_is_learnt_in_good_time_and_hidden_in_whole_and_in_lines() -> None:
    key = "\n".join(f"{number:04}/" + 59 * "+" for number in range(80))
    hide = redaction(key).hide
    for told in (key, repr(key), json.dumps(key), quote(key, safe=""), b64encode(key.encode())):
        assert REFERENCE in hide(str(told))
        assert "0050" not in hide(str(told))
    assert hide(f"at {key.splitlines()[50]}") == f"at {REFERENCE}"


@pytest.mark.timeout(60)
def test_many_values_of_one_config_are_learnt_in_good_time_and_all_hidden() -> None:
    special = "'\"<>&+ =:;,.!?#@/\\(){}[]*|~^%$-_`"
    values = [f"{number:03}{special}" * 8 for number in range(40)]
    made = Redaction()
    made.learn(dict.fromkeys(values, REFERENCE))
    for value in values:
        assert made.hide(f"<{value}>, <{repr(value)[1:-1]}>") == f"<{REFERENCE}>, <{REFERENCE}>"


def test_a_letter_that_has_two_as_a_capital_is_hidden_as_both() -> None:
    assert redaction("straße-4711").hide("user STRASSE-4711!") == f"user {REFERENCE}!"
