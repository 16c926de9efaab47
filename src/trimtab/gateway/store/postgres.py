"""A connection to PostgreSQL that does not wait for ever: a server that is stopped still acknowledges bytes."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

ANSWER_S = 6.0  # for one statement: a little more than the server's own bound, which a server that hangs does not keep


class Bounded(psycopg.Connection[Any]):
    """Closed when one statement got no answer within ANSWER_S."""

    def wait(self, gen: Generator[Any, Any, Any], *others: Any, **named: Any) -> Any:
        """psycopg's, which ends with an OperationalError after ANSWER_S."""
        return super().wait(self._bounded(gen, time.monotonic() + ANSWER_S), *others, **named)

    def _bounded(self, gen: Generator[Any, Any, Any], ends: float) -> Generator[Any, Any, Any]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > ends:
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {ANSWER_S:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value
