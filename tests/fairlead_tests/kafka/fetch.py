"""Fetches Kafka's jars before tests ask for them: `python -m fairlead_tests.kafka.fetch`.

They come one after the other from far away. A test that needs them meanwhile waits for the lock.
"""

from contextlib import suppress

from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import keep
from fairlead_tests.kafka_clients.jars import classpath

if __name__ == "__main__":
    with suppress(NoPeer):  # a test that needs them tells so
        keep()
        classpath()
