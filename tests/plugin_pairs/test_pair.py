"""Records of a source task of Connect are put to a sink task of Connect as they are."""

import pytest

from fairlead.runtime.pipeline.spi.errors import SinkAway
from fairlead_tests.plugins.host_processes import kill_plugin_host
from fairlead_tests.plugins.pair_driver import PairDriver, word

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
TWELVE = [*"abcdefghijkl"]


def put(*words: str, first: int = 0) -> list[str]:
    return [f"words-0@{first + at} {each}" for at, each in enumerate(words)]


def test_records_keep_key_value_headers_time_and_all_schemas(driver: PairDriver) -> None:
    key = {"type": "struct", "name": "s.Key", "fields": [{"field": "id", "type": "int64"}]}
    inner = {
        "type": "struct",
        "name": "s.Value",
        "optional": True,
        "fields": [
            {"field": "id", "type": "int64"},
            {
                "field": "at",
                "type": "int64",
                "optional": True,
                "name": "io.debezium.time.MicroTimestamp",
                "version": 1,
            },
            {"field": "n", "type": "int16", "optional": True, "default": 7},
            {"field": "part", "type": "float", "parameters": {"size": "4"}},
        ],
    }
    value = {
        "type": "struct",
        "name": "s.Envelope",
        "version": 2,
        "fields": [{**inner, "field": "before"}, {**inner, "field": "after"}],
    }
    after = {"id": 1, "at": 5, "n": None, "part": 0.5}
    plain = {"a": [1, None], "b": {"c": "d"}}
    driver.write(
        [
            {
                "topic": "s.items",
                "key": {"schema": key, "payload": {"id": 1}},
                "value": {"schema": value, "payload": {"before": None, "after": after}},
                "headers": {"trace": "123"},
                "timestamp": 1704164645006,
            },
            {"topic": "s.items", "key": {"schema": key, "payload": {"id": 1}}, "value": None},
            {"topic": "plain", "value": {"schema": None, "payload": plain}, "timestamp": 7},
        ]
    )
    driver.start(sink_does="shows schemas")
    driver.until(lambda: len(driver.told) == 5)
    row = "struct s.Value? (id int64, at int64 io.debezium.time.MicroTimestamp v1?, "
    row += "n int16? = 7, part float32 {size=4})"
    of_key = "key struct s.Key (id int64)"
    first, gone, free = (each for each in driver.told if "@" in each)
    assert first == (
        "s.items-0@0 {id=1} -> {before=null, after={id=1, at=5, n=7, part=0.5}} at 1704164645006"
        f" trace=123:string {of_key} value struct s.Envelope v2 (before {row}, after {row})"
    )
    assert gone.startswith("s.items-0@1 {id=1} -> null at 1")
    assert gone.endswith(f" {of_key} value none")
    assert free == "plain-0@0 {a=[1, null], b={c=d}} at 7 key none value none"


def test_a_source_hears_of_what_counts_and_is_polled_while_the_sink_holds_the_rest(
    driver: PairDriver,
) -> None:
    driver.write(*([word(each, timestamp=1)] for each in TWELVE))
    driver.start(sink_does="holds")
    driver.until(lambda: driver.at == 19 and len(driver.told) == 13)
    driver.until(lambda: len([each for each in driver.heard if "counts {" in each]) == 10)
    polls = [each for each in driver.heard if each.startswith("polls")]
    assert len(polls) == 12
    told = [each for each in driver.heard if each.startswith("counts")]
    assert told[-1].startswith("counts {at=19}")
    driver.end()
    assert driver.at == 19
    driver.start()
    driver.until(lambda: driver.at == 23)
    again = [each.partition(" at ")[0] for each in driver.told[14:]]
    assert again == ["open words-0", *put(*TWELVE[10:], first=10)]


def test_a_sink_seeks_back_among_records_that_do_not_count(patient_driver: PairDriver) -> None:
    driver = patient_driver
    driver.write(*([word(each) for each in poll] for poll in ("abcd", "e")))
    driver.start(sink_does="seeks")
    driver.until(lambda: any(each.startswith("words-0@4") for each in driver.told))
    lines = ["open words-0", *put(*"abcd"), *put(*"bcde", first=1)]
    assert [each.partition(" at ")[0] for each in driver.told] == lines


@pytest.mark.parametrize(
    ("does", "lines"),
    [
        ("retries", ["open words-0", "refuse 2", "refuse 2", *put(*"abcde")]),
        ("fails flushes", ["open words-0", *put(*"ab"), "fail flush", *put(*"abcde")]),
    ],
)
def test_a_sink_goes_back_to_records_that_do_not_count(
    driver: PairDriver, does: str, lines: list[str]
) -> None:
    driver.write([word(each) for each in "ab"])
    driver.start(sink_does=does)
    driver.until(lambda: driver.at == 2)
    driver.write([word(each) for each in "cde"])
    driver.until(lambda: any(each.startswith("words-0@4") for each in driver.told))
    assert [each.partition(" at ")[0] for each in driver.told] == lines


def test_a_sink_has_its_topics_alone_and_the_source_goes_on(driver: PairDriver) -> None:
    driver.write([word("a"), word("x", topic="other")], [word("y", topic="other")])
    driver.start(sink_topics="words,more")
    driver.until(lambda: driver.at == 4)
    assert [each.partition(" at ")[0] for each in driver.told] == ["open words-0", *put("a")]


def test_a_sink_is_asked_for_offsets_once_there_is_much_that_does_not_count(
    patient_driver: PairDriver,
) -> None:
    driver, wide = patient_driver, "x" * 100_000
    driver.write(*([word(f"{each}{wide}") for each in range(20)] for _ in range(10)))
    driver.start()
    driver.until(lambda: driver.at)
    driver.until(lambda: any(each.startswith("counts") for each in driver.heard))
    assert int(str(driver.at)) >= 16_000_000 // len(wide)


def test_a_record_that_cannot_be_written_is_a_letter_once(driver: PairDriver) -> None:
    driver.write([word("a"), word("bad", headers={"h": "1"})])
    driver.start(sink_does="reports")
    driver.until(lambda: driver.at == 2)
    assert driver.rejected == 1


def test_what_did_not_count_is_put_again_after_the_death_of_the_host(driver: PairDriver) -> None:
    driver.write(*([word(each)] for each in TWELVE))
    driver.start(sink_does="holds")
    driver.until(lambda: driver.at == 19 and len(driver.told) == 13)
    kill_plugin_host()
    with pytest.raises(SinkAway, match="the plugin host has ended"):
        driver.until(lambda: False)
    driver.close()
    driver.start()
    driver.until(lambda: driver.at == 23)
    assert [each.partition(" at ")[0] for each in driver.told[13:]] == [
        "open words-0",
        *put(*TWELVE[10:], first=10),
    ]
