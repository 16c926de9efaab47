"""Mixed requests with faults through a gateway: each is answered once, and the usage in the store adds up exactly.

    python benchmarks/gateway/faults.py [--requests 100000] [--connections 32] [--seed 1] [--json]

The gateway, two back ends (benchmarks/gateway/faulty_back_end.py) and the client are processes of their own. Each kind
of request has the outcomes that it may have; the store's counts by model and status are held against what the client
saw, and the tokens of all answers whose usage the back end told against those that it told. Exit code 1 when a
request has no outcome or another one, or a sum is not the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from faulty_back_end import CHUNKS, tokens

HERE = Path(__file__).parent
TRIMTAB = str(Path(sys.executable).with_name("trimtab"))
WAIT_S = 30.0
# kind -> how many of 100 requests, and the outcomes that it may have
KINDS: dict[str, tuple[int, frozenset[str]]] = {
    "plain": (34, frozenset({"200"})),
    "stream": (22, frozenset({"200"})),
    "split": (4, frozenset({"200"})),
    "slow": (3, frozenset({"200"})),
    "last": (6, frozenset({"200"})),
    "drop": (4, frozenset({"200"})),
    "uncounted": (3, frozenset({"200"})),
    "bad": (4, frozenset({"400"})),
    "broken": (3, frozenset({"500", "502"})),
    "busy": (3, frozenset({"429"})),
    "cut": (3, frozenset({"cut"})),
    "short": (2, frozenset({"502"})),  # its model is renamed, so the whole of it is waited for
    "garbage": (1, frozenset({"502"})),
    "leave": (3, frozenset({"left"})),
    "key": (2, frozenset({"401"})),
    "model": (2, frozenset({"404"})),
    "json": (1, frozenset({"400"})),
}
REFUSED = frozenset({"key", "model", "json"})  # before any back end is asked: of these the store holds nothing
TOLD = frozenset({"plain", "stream", "split", "slow", "last", "drop"})


class Outcome(NamedTuple):
    """What became of a request; `whole`: its answer came to its end and is the right one."""

    kind: str
    number: int
    word: str
    whole: bool


class Client:
    """A connection that is kept where the gateway keeps it."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, kind: str, number: int) -> Outcome:
        """One request, to its outcome."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(self._request(kind, number))
        try:
            async with asyncio.timeout(WAIT_S):
                return await self._read(reader, kind, number)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            return Outcome(kind, number, "cut", False)
        except TimeoutError:
            self.close()
            return Outcome(kind, number, "silence", False)

    def close(self) -> None:
        """Leave."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    def _request(self, kind: str, number: int) -> bytes:
        asked: dict[str, Any] = {
            "model": "unknown" if kind == "model" else "told" if kind in TOLD else "other",
            "messages": [{"role": "user", "content": f"{kind} {number}"}],
        }
        if kind in ("stream", "split", "cut", "leave"):
            asked["stream"] = True
        body = json.dumps(asked).encode()
        body = body[:-3] if kind == "json" else body
        key = "sk-of-nobody" if kind == "key" else self._key
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    async def _read(self, reader: asyncio.StreamReader, kind: str, number: int) -> Outcome:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = head[9:12].decode()
        if kind == "leave" and status == "200":
            await reader.readline()
            self.close()
            return Outcome(kind, number, "left", False)
        if b"transfer-encoding: chunked" in head:
            body = await _chunks(reader)
        else:
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
        if b"connection: close" in head:
            self.close()
        return Outcome(kind, number, status, _is_right(kind, number, body) if status == "200" else True)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while size := int(await reader.readuntil(b"\n"), 16):
        found += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return found


def _is_right(kind: str, number: int, body: bytes) -> bool:
    if kind not in ("stream", "split"):
        return bool(json.loads(body)["choices"][0]["message"]["content"].startswith(f"{number} "))
    *events, last = [event.removeprefix(b"data: ") for event in body.split(b"\n\n") if event]
    words = [json.loads(event)["choices"][0]["delta"]["content"] for event in events]
    return last == b"[DONE]" and words == [f"{number}.{at} 你好 " for at in range(CHUNKS)]


async def send_all(port: int, key: str, requests: int, connections: int, seed: int) -> list[Outcome]:
    """All requests, so many at once, in an order that the seed gives."""
    names, weights = list(KINDS), [share for share, _ in KINDS.values()]
    kinds = iter(enumerate(random.Random(seed).choices(names, weights, k=requests)))
    outcomes: list[Outcome] = []

    async def work() -> None:
        client = Client(port, key)
        for number, kind in kinds:
            outcomes.append(await client.ask(kind, number))
        client.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return outcomes


def faults_of(outcomes: list[Outcome], requests: int, rows: list[dict[str, Any]]) -> list[str]:
    """What is not as it should be."""
    wrong = [f"{requests} requests, {len(outcomes)} outcomes"] if len(outcomes) != requests else []
    for outcome in outcomes:
        if outcome.word not in KINDS[outcome.kind][1] or (outcome.word == "200" and not outcome.whole):
            wrong.append(f"{outcome.kind} {outcome.number}: {outcome.word}, whole: {outcome.whole}")
    # of a silence the store holds what became of it when the client gave up
    status = {"cut": 502, "left": 499, "silence": 499}
    seen = Counter(
        ("told" if o.kind in TOLD else "other", status.get(o.word) or int(o.word))
        for o in outcomes if o.kind not in REFUSED
    )  # fmt: skip
    stored: Counter[tuple[str, int]] = Counter()
    for row in rows:
        stored[row["model"], int(row["status"])] += row["requests"]
    if seen != stored:
        wrong.append(f"the store counts {dict(stored)}, the client {dict(seen)}")
    told = [tokens(o.number) for o in outcomes if o.kind in TOLD and o.word == "200"]
    asked = [row for row in rows if row["model"] == "told" and int(row["status"]) == 200]
    sums = tuple(sum(row[name] for row in asked) for name in ("prompt_tokens", "completion_tokens"))
    if sums != (sum(p for p, _ in told), sum(c for _, c in told)):
        wrong.append(f"the store has {sums} tokens, told were {sum(p for p, _ in told)}, {sum(c for _, c in told)}")
    if any(row["uncounted"] for row in asked):
        wrong.append("tokens were estimated though they were told")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trimtab-faults-") as place:
        outcomes, rows, seconds = run(Path(place), options)
    wrong = faults_of(outcomes, options.requests, rows)
    words = {kind: dict(Counter(o.word for o in outcomes if o.kind == kind)) for kind in KINDS}
    report = {"requests": options.requests, "seconds": round(seconds, 1), "seed": options.seed, "outcomes": words,
              "faults": len(wrong), "first": wrong[:20]}  # fmt: skip
    print(json.dumps(report) if options.json else "\n".join(f"{name}: {value}" for name, value in report.items()))
    return 1 if wrong else 0


def run(place: Path, options: argparse.Namespace) -> tuple[list[Outcome], list[dict[str, Any]], float]:
    """Outcomes, rows of the store by model and status, seconds."""
    back = subprocess.Popen(
        [sys.executable, HERE / "faulty_back_end.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert back.stdout is not None
    targets = {f"b{at}": {"url": f"http://127.0.0.1:{port}"} for at, port in enumerate(back.stdout.readline().split())}
    model = {"targets": [{"back_end": name, "model": "m"} for name in targets]}
    config = {"local": False, "listen": "127.0.0.1:0", "back_ends": targets, "models": {"told": model, "other": model}}
    (place / "gateway.yaml").write_text(json.dumps(config))
    environ = {**os.environ, **{f"XDG_{kind}_HOME": str(place / kind.lower()) for kind in ("DATA", "STATE", "CONFIG")}}

    def trimtab(*words: str) -> Any:
        command = [TRIMTAB, *words, "--config", str(place / "gateway.yaml"), "--json"]
        return json.loads(subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout)

    key = trimtab("keys", "create", "--label", "faults")["text"]
    command = [TRIMTAB, "gateway", "--config", str(place / "gateway.yaml")]
    gateway = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert gateway.stdout is not None
        port = int(gateway.stdout.readline().rpartition(":")[2].split("/")[0])
        begun = time.monotonic()
        outcomes = uvloop.run(send_all(port, key, options.requests, options.connections, options.seed))
        seconds = time.monotonic() - begun
    finally:
        gateway.terminate()
        gateway.wait(30)
        gateway.communicate()
        back.communicate("")
    return (
        outcomes,
        [{**row, **row["group"]} for row in trimtab("keys", "usage", "--by", "model,status")["groups"]],
        seconds,
    )


if __name__ == "__main__":
    raise SystemExit(main())
