"""The clients of `trimtab bench` and of `vllm bench serve` on a server whose gaps are known: which do they tell?

    python benchmarks/against_vllm_client.py --source vllm/benchmarks/lib/endpoint_request_func.py --python PYTHON

64 streams of 100 chunks a second each: one at a time, and in bursts that a server writes at once, as a busy one does.
The source is vLLM's own file, loaded alone; PYTHON is one that has aiohttp, regex and tqdm. No engine is started.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

STREAMS, CHUNKS, EVERY_S = 64, 720, 0.01
THEIRS = """
import aiohttp, asyncio, importlib.util, json, sys, time
spec = importlib.util.spec_from_file_location("theirs", sys.argv[1])
theirs = sys.modules["theirs"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(theirs)
async def main(url, streams, chunks, burst):
    connector = aiohttp.TCPConnector(limit=streams, limit_per_host=streams)
    async with aiohttp.ClientSession(connector=connector) as session:
        before, began = time.process_time(), time.perf_counter()
        asked = theirs.RequestFuncInput(prompt="x", api_url=url, prompt_len=1, output_len=chunks, model="m",
                                        extra_body={"seed": burst, "max_tokens": chunks})
        ask = theirs.async_request_openai_chat_completions
        done = await asyncio.gather(*(ask(asked, session) for _ in range(streams)))
        span, cpu = time.perf_counter() - began, time.process_time() - before
    gaps = [gap for one in done for gap in one.itl]
    print(json.dumps({"gaps": gaps, "span": span, "cpu": cpu, "failed": sum(not one.success for one in done)}))
asyncio.run(main(sys.argv[2], *map(int, sys.argv[3:])))
"""
EVENT = (
    b'data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}\n\n'
)
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """`max_tokens` chunks, `seed` of them written at once, as many a second as without bursts."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    loop = asyncio.get_running_loop()
    due = loop.time() + 0.3
    for _ in range(0, body["max_tokens"], body["seed"]):
        due += EVERY_S * body["seed"]
        await asyncio.sleep(due - loop.time())
        for _ in range(body["seed"]):
            writer.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(END), END))
    await writer.drain()
    writer.close()


async def serve() -> None:
    """Print the port and answer until ended."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def ours(url: str, burst: int) -> dict[str, object]:
    """The gaps that our client tells."""
    import uvloop

    from trimtab.bench.wire import Bounds, address_of, send

    async def ask() -> dict[str, object]:
        body = {"model": "m", "messages": [], "stream": True, "max_tokens": CHUNKS, "seed": burst}
        address, began = address_of(url, None), time.perf_counter()
        done = await asyncio.gather(*(send(address, body, Bounds()) for _ in range(STREAMS)))
        span = time.perf_counter() - began
        gaps = [b - a for one in done for a, b in pairwise(one.times)]
        return {"gaps": gaps, "span": span, "failed": sum(one.trouble is not None for one in done)}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(ask())


def row(name: str, burst: int, found: dict[str, object], cpu_s: float) -> str:
    """One line of the table."""
    gaps = sorted(1000 * gap for gap in found["gaps"])  # type: ignore[attr-defined]
    p50, p90, p99 = (gaps[int(share * (len(gaps) - 1))] for share in (0.5, 0.9, 0.99))
    zero = sum(gap < 0.2 for gap in gaps) / len(gaps)
    share = cpu_s / float(str(found["span"]))
    return (
        f"| {burst} | {name} | {sum(gaps) / len(gaps):.2f} | {p50:.2f} | {p90:.2f} | {p99:.1f} | {100 * zero:.0f}% |"
        f" {100 * share:.1f}% | {found['failed']} |"
    )


def main() -> None:
    """Serve, ask by both in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.serve:
        asyncio.run(serve())
        return
    print("| burst | client | mean, ms | p50 | p90 | p99 | below 0.2 ms | of a core | failed |\n" + "| --- " * 9 + "|")
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1/chat/completions"
            for burst in (1, 18, 40) * words.rounds:
                before = time.process_time()
                found = ours(url, burst)
                print(row("trimtab", burst, found, time.process_time() - before), flush=True)
                argv = [words.python, "-c", THEIRS, words.source, url, STREAMS, CHUNKS, burst]
                done = subprocess.run(list(map(str, argv)), stdout=subprocess.PIPE, check=True)
                value = json.loads(done.stdout)
                print(row("vllm", burst, value, value["cpu"]), flush=True)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
