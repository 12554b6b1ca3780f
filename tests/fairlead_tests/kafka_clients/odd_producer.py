"""Writes records as no usual client does: `python -m fairlead_tests.kafka_clients.odd_producer …`.

They have no timestamp, and each second one has a header whose key is not in UTF-8.
"""
# pyright: basic

import subprocess
import sys
from pathlib import Path


class OddKey(str):
    """A header's key that is written in other bytes than UTF-8."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Return bytes that are no text."""
        del encoding, errors
        return b"h\xff"


def write_odd(bootstrap: str, topic: str, times: int) -> None:
    """Write so many records, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", __name__, bootstrap, topic, str(times)]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True, timeout=60)


def _main(bootstrap: str, topic: str, times: str) -> None:
    from kafka.producer.kafka import KafkaProducer  # noqa: PLC0415  # its import warns

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(int(times)):
        odd = [("a", b"1"), (OddKey("x"), b"2")] if number % 2 else [("a", b"1")]
        producer.send(topic, b"v", headers=odd, timestamp_ms=-1)
    producer.flush()
    producer.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
