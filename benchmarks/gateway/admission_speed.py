"""What one request costs in admission and books, what a flush takes from the loop, how soon others hear of a change.

    python benchmarks/gateway/admission_speed.py [--json]

All limits of the key are set, 10,000 keys are known. The store is an SQLite file in a temporary directory. The best of
several rounds is told: others that use the machine only make it slower.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path

from trimtab.gateway.admission import Key, Keys
from trimtab.gateway.config import Price
from trimtab.gateway.keytext import hash_of, minted
from trimtab.gateway.limits import Limits
from trimtab.gateway.store.database import open_store
from trimtab.gateway.store.keys import Wish, change_key, create_key
from trimtab.gateway.store.sync import Sync
from trimtab.gateway.tally import Tally
from trimtab.gateway.usage import Record

KEYS, TIMES, ROUNDS = 10_000, 20_000, 25
CHAT = b"/chat/completions"
BODY = b"x" * 900
LIMITS = Limits(
    models=("qwen*", "gpt-oss-*"), endpoints=("chat", "messages"), requests_per_minute=10**9, tokens_per_minute=10**12,
    concurrency=100, long_prompts=4, context=10**6, tokens_per_day=10**15, tokens_per_month=10**15, money_per_day=1e12,
    money_per_month=1e12,
)  # fmt: skip


def made(text: bytes, count: int = KEYS) -> Keys:
    keys = Keys((hash_of(minted().encode()), Key(f"k{n}", limits=LIMITS)) for n in range(count - 1))
    keys.put(Key("mine", limits=LIMITS), {hash_of(text): None})
    return keys


def best_us(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, timer=time.process_time, number=TIMES, repeat=ROUNDS)) / TIMES * 1e6


def request_us() -> dict[str, float]:
    """Microseconds of each step, and of all of them in a row."""
    text = minted().encode()
    keys = made(text)
    tally = Tally(keys.by_id, {"qwen3": Price(prompt=1.0, completion=2.0)})
    key, record = (
        keys.find(text),
        Record("mine", "qwen3", "local", "/chat/completions", 200, 300, 64, 0, 0.4, 0.1, True),
    )

    def both() -> None:
        now = time.time()
        held = key.enter(now, "qwen3", CHAT, BODY)
        key.leave(now, "qwen3", 364, held)

    def whole() -> None:
        found = keys.find(text)
        held = found.enter(time.time(), "qwen3", CHAT, BODY)
        found.leave(time.time(), "qwen3", 364, held)
        tally(Record("mine", "qwen3", "local", "/chat/completions", 200, 300, 64, 0, 0.4, 0.1, True))

    return {
        "find": best_us(lambda: keys.find(text)),
        "enter and leave": best_us(both),
        "record": best_us(lambda: tally(record)),
        "all four": best_us(whole),
    }


async def _late_ms(rows: int, seconds: float) -> tuple[float, float]:
    """How late a timer of 1 ms comes while flushes of so many rows go on (0: none): p99 and the latest."""
    with tempfile.TemporaryDirectory() as directory:
        keys = Keys()
        tally = Tally(keys.by_id)
        sync = Sync(open_store(None, Path(directory) / "store.db"), keys, tally)
        sync.load()
        if rows:
            sync.begin()
        late: list[float] = []
        end = time.perf_counter() + seconds
        while (due := time.perf_counter() + 0.001) < end:
            for n in range(rows // 400 + 1 if rows else 0):
                tally(
                    Record(f"k{len(late) * 7 % rows + n}", "m", "b", "/chat/completions", 200, 1, 1, 0, 0.1, 0.1, True)
                )
            await asyncio.sleep(0.001)
            late.append(max(0.0, time.perf_counter() - due) * 1e3)
        await sync.end()
    late.sort()
    return late[int(len(late) * 0.99)], late[-1]


async def heard_s(times: int) -> list[float]:
    """How long after a key was changed in the store a gateway on it goes by the change."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "store.db"
        keys = Keys()
        sync = Sync(open_store(None, file), keys, Tally(keys.by_id))
        beside = open_store(None, file)
        id = create_key(beside, Wish("k")).key.id
        sync.load()
        sync.begin()
        took: list[float] = []
        for number in range(times):
            await asyncio.sleep(0.1 + number % 7 * 0.05)  # at any moment between two ticks
            change_key(beside, id, {"label": f"k{number}"})
            begun = time.perf_counter()
            while keys.by_id[id].label != f"k{number}":  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.002)
            took.append(time.perf_counter() - begun)
        await sync.end()
        beside.close()
    return sorted(took)


def main() -> None:
    found: dict[str, float] = {f"{name}, us": value for name, value in request_us().items()}
    for rows in (0, 1, 100, 1000):
        p99, latest = asyncio.run(_late_ms(rows, 5.0))
        found |= {f"late with {rows} rows a flush, p99 ms": p99, f"late with {rows} rows a flush, latest ms": latest}
    took = asyncio.run(heard_s(40))
    found |= {"a change is heard of after, median s": took[20], "a change is heard of after, latest s": took[-1]}
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:45} {value:8.2f}")


if __name__ == "__main__":
    main()
