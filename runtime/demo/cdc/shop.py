"""The input of the CDC demo: a table of orders, and threads that change it."""

import random
from collections.abc import Callable
from decimal import Decimal
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

ROWS: Final = 30_000
"""The number of rows before the connectors start."""
TABLE: Final = "orders"
END: Final = 0
"""The id of the order that is written last."""

_MAKE: Final = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL, quantity int NOT NULL,
    price numeric(10,2) NOT NULL, note text)"""
_FILL: Final = """
INSERT INTO orders
SELECT i, 'customer ' || i %% 997, 1 + i %% 9, (i %% 5000) / 100.0, repeat('n', 200)
FROM generate_series(1, %s) i"""
_MOST: Final = 20
"""The maximum number of changes in a transaction."""
_PAUSE_S: Final = 0.1
"""The longest pause between two transactions of a thread."""


def open_shop(connection: "psycopg.Connection[Any]") -> None:
    """Create and fill the table."""
    connection.execute(_MAKE)
    connection.execute(_FILL, (ROWS,))
    connection.execute("ANALYZE orders")


class Customers:
    """Threads that change orders in transactions, some of which are rolled back, until `stop`."""

    def __init__(self, connect: Callable[[], "psycopg.Connection[Any]"], seed: int) -> None:
        self._connect = connect
        self._dice = random.Random(seed)  # noqa: S311 - no secret
        self._stop = Event()
        self._next = ROWS + 1 + seed
        self.committed = 0
        """The number of committed changes."""
        self.error: Exception | None = None
        """The error that ended a thread too early."""
        self._thread = Thread(target=self._run, name="customers", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current transactions."""
        self._stop.set()
        if self._thread.is_alive():  # it may not have started
            self._thread.join()

    def _run(self) -> None:
        try:
            with self._connect() as connection:
                connection.autocommit = False
                while not self._stop.wait(_PAUSE_S * self._dice.random()):
                    changes = sum(
                        self._change(connection) for _ in range(self._dice.randint(1, _MOST))
                    )
                    if self._dice.random() < 0.05:  # noqa: PLR2004
                        connection.rollback()
                    else:
                        connection.commit()
                        self.committed += changes
        except Exception as error:  # noqa: BLE001 - told by who asks
            self.error = error

    def _change(self, connection: "psycopg.Connection[Any]") -> int:
        number, kind = self._dice.randint(1, ROWS), self._dice.random()
        price = Decimal(self._dice.randint(1, 9_999)) / 100
        if kind < 0.4:  # noqa: PLR2004
            self._next += 10
            values = (self._next, f"customer {number % 997}", 1 + number % 9, price)
            query = "INSERT INTO orders VALUES (%s, %s, %s, %s, NULL)"
            return connection.execute(query, values).rowcount
        if kind < 0.8:  # noqa: PLR2004
            query = "UPDATE orders SET price = %s, quantity = quantity + 1 WHERE id = %s"
            return connection.execute(query, (price, number)).rowcount
        return connection.execute("DELETE FROM orders WHERE id = %s", (number,)).rowcount


def close_shop(connection: "psycopg.Connection[Any]") -> None:
    """Write the last order: a target that has it has all changes before it."""
    connection.execute("INSERT INTO orders VALUES (%s, 'the end', 1, 1, NULL)", (END,))
