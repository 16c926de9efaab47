"""What the client of `trimtab bench` costs: its share of one core at many streams of many chunks a second.

    python benchmarks/client_overhead.py [--streams 64] [--rate 100] [--seconds 20] [--runs 3]

benchmarks/gateway/backend.c sends the chunks at their times from a process of its own; cc must be there. Measured is
the CPU time of the whole client over the run, reading the answers included.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import socket
import subprocess
import tempfile
from itertools import islice
from pathlib import Path

import uvloop

from trimtab.bench.endpoint import Server
from trimtab.bench.load import Load, Shape, draw, read_lengths
from trimtab.bench.run import Way, run
from trimtab.bench.stats import summary
from trimtab.bench.texts import Sized
from trimtab.bench.wire import Bounds, address_of

SOURCE = Path(__file__).with_name("gateway") / "backend.c"


def main() -> None:
    """Compile, serve, measure."""
    words = _words()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "backend"
        subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen([program, str(port)], stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                for _ in range(words.runs):
                    print(once(f"http://127.0.0.1:{port}", words))
            finally:
                server.terminate()


def once(url: str, words: argparse.Namespace) -> str:
    """One run, in a line."""
    tokens = read_lengths(str(words.rate * words.seconds))
    shape, load = Shape(read_lengths("128"), tokens), Load(words.streams, requests=words.streams)
    requests = [Sized(one, "Tell me something.", 128, True) for one in islice(draw(shape, load, 0), words.streams)]
    sampling = {"seed": round(1e6 / words.rate)}  # which that server takes for the microseconds between two chunks
    server = Server(url, f"{url}/v1", "m", (), None)
    way = Way(server, address_of(server.url, None), Bounds(), exact_output=False, sampling=sampling)
    before = _cpu_s()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(run(way, shape, load, requests, gauge=None, progress=None))
    share = (_cpu_s() - before) / found.span_s
    rate = sum(len(row.itl_s) + 1 for row in found.rows) / found.span_s
    itl = summary(found.rows, found.span_s).itl
    gaps = f"gaps p50 {1000 * itl.p50.value:.2f}, p99 {1000 * itl.p99.value:.2f} ms" if itl is not None else "no gaps"
    return f"{rate:.0f} chunks/s: {100 * share:.2f}% of one core, {1e6 * share / rate:.2f} us a chunk; {gaps}"


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"streams": 64, "rate": 100, "seconds": 20, "runs": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


if __name__ == "__main__":
    main()
