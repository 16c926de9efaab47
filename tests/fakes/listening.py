"""A server of the standard library that answers in a thread for the length of a block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer

LOOK_S = 0.02  # between two looks at whether it shall end


@contextmanager
def listening(server: BaseServer) -> Iterator[None]:
    """At the end of the block nothing of it is left: no thread, no socket."""
    thread = threading.Thread(target=server.serve_forever, args=(LOOK_S,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
