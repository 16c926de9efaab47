"""A gateway's worker without its sockets: keys, tally and sync in a process of its own, told what to do line by line.

Run as `python -m tests.gateway.store.worker ADDRESS`; each line of standard input is a command, each answer a line of
JSON. SIGTERM ends it as it ends a gateway.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

from trimtab.gateway.admission import Keys
from trimtab.gateway.config import Price
from trimtab.gateway.request import Refused
from trimtab.gateway.store.database import open_store
from trimtab.gateway.store.sync import Sync
from trimtab.gateway.tally import Tally
from trimtab.gateway.usage import Record

CHAT = b"/chat/completions"


class Worker:
    """Its commands: enter KEY, leave TOKENS, peek KEY, pour SECONDS BETWEEN, health, said."""

    def __init__(self, address: str) -> None:
        self.keys = Keys()
        self.tally = Tally(self.keys.by_id, {"m": Price(prompt=1.0, completion=2.0)})
        self.said: list[str] = []
        store = open_store(address, Path())
        self.sync = Sync(store, self.keys, self.tally, say=lambda line: self.said.append(str(line)))
        self.key = ""
        self.sync.load()

    def enter(self, text: str) -> dict[str, object]:
        try:
            key = self.keys.find(text.encode())
            key.enter(time.time(), "m", CHAT, b"")
        except Refused as refused:
            return {"refused": refused.code, "message": refused.message}
        self.key = key.id
        return {"entered": key.id}

    def leave(self, tokens: str) -> dict[str, object]:
        self.keys.by_id[self.key].leave(time.time(), "m", int(tokens))
        self.tally(Record(self.key, "m", "b", "/chat/completions", 200, int(tokens), 0, 0, 0.2, 0.1, True))
        return {"left": int(tokens)}

    async def pour(self, seconds: str, between: str) -> dict[str, object]:
        """Answer requests for so long, saying the time of each."""
        end = time.time() + float(seconds)
        while time.time() < end:
            self.leave("1")
            print(json.dumps({"at": time.time()}), flush=True)
            await asyncio.sleep(float(between))
        return {"poured": True}

    def peek(self, text: str) -> dict[str, object]:
        requests, tokens, parallel = self.keys.find(text.encode()).everywhere()
        return {"requests": requests, "tokens": tokens, "parallel": parallel}

    def seen(self) -> dict[str, object]:
        health = self.sync.health
        return {"reachable": health.reachable, "rows_kept": health.rows_kept, "reason": str(health.reason or "")}

    def told(self) -> dict[str, object]:
        """What a gateway would have said of the store."""
        return {"said": self.said}


async def main(address: str) -> None:
    worker = Worker(address)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    worker.sync.begin()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps({"ready": worker.sync.worker}), flush=True)
    serving = asyncio.ensure_future(_serve(worker, reader))
    await stop.wait()
    serving.cancel()
    await worker.sync.end()
    print(json.dumps({"lost": worker.sync.health.requests_lost}), flush=True)


async def _serve(worker: Worker, reader: asyncio.StreamReader) -> None:
    while line := (await reader.readline()).decode().split():
        match line:
            case ["enter", text]:
                answer = worker.enter(text)
            case ["peek", text]:
                answer = worker.peek(text)
            case ["leave", tokens]:
                answer = worker.leave(tokens)
            case ["pour", seconds, between]:
                answer = await worker.pour(seconds, between)
            case ["said"]:
                answer = worker.told()
            case _:
                answer = worker.seen()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
