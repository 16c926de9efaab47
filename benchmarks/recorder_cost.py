"""What the flight recorder costs: CPU of one look and of a core at rest, size of 48 hours, memory of its process.

    python benchmarks/recorder_cost.py [--seconds 60]

A real HTTP server answers /metrics with as many engines as named, each with the families of vLLM 0.33.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trimtab.engine.flight import MemoryUsed, Moment, encode_moment
from trimtab.engine.vitals import read_vitals
from trimtab.facts.probe.meter import Meter
from trimtab.supervisor.recorder import EVERY_S, SEGMENT_BYTES, SEGMENTS, Recorder, read_flight
from trimtab.supervisor.states import State

HISTOGRAMS, BUCKETS = 18, 20  # of vLLM 0.33's v1/metrics/loggers.py, about
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
body = open(sys.argv[1], "rb").read()
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def exposition(engines: int) -> bytes:
    """Prometheus text of `engines` engines, in the order and with the labels that vLLM writes."""
    lines = ["process_start_time_seconds 1.79602340e+09"]
    plain = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "num_preemptions_total",
             "generation_tokens_total", "prompt_tokens_total", "prefix_cache_queries_total", "prefix_cache_hits_total",
             "request_success_total")  # fmt: skip
    for name in plain:
        lines += [f"# HELP vllm:{name} text", f"# TYPE vllm:{name} gauge"]
        lines += [f'vllm:{name}{{engine="{e}",model_name="organisation/some-model"}} {e}.0' for e in range(engines)]
    for number in range(HISTOGRAMS):
        name = "request_prompt_tokens" if number == 0 else f"histogram_{number}_seconds"
        lines += [f"# HELP vllm:{name} text", f"# TYPE vllm:{name} histogram"]
        for e in range(engines):
            label = f'engine="{e}",model_name="organisation/some-model"'
            lines += [f'vllm:{name}_bucket{{{label},le="{b}.0"}} {b}.0' for b in range(1, BUCKETS + 1)]
            lines += [f'vllm:{name}_bucket{{{label},le="+Inf"}} 20.0', f"vllm:{name}_sum{{{label}}} 5.0"]
    return ("\n".join(lines) + "\n").encode()


def parse_ms(body: bytes, times: int = 20) -> float:
    """CPU milliseconds of reading one body."""
    begun = time.thread_time()
    for _ in range(times):
        read_vitals(body)
    return (time.thread_time() - begun) / times * 1e3


def recorded(body: bytes, seconds: float) -> tuple[float, int]:
    """CPU seconds that this process spent while the recorder ran so long, and the moments it wrote."""
    meter = Meter()

    def memory() -> MemoryUsed:
        seen = meter.read()
        return MemoryUsed(seen.gpu_used, seen.gpu_total, seen.host_free)

    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "metrics"
        file.write_bytes(body)
        with subprocess.Popen([sys.executable, "-c", SERVER, str(file)], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            recorder = Recorder(Path(home), url, memory)
            begun = time.process_time()
            recorder.state(State.READY)
            time.sleep(seconds)
            spent = time.process_time() - begun
            recorder.close()
            server.kill()
        return spent, len(read_flight(Path(home)))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    told = parser.parse_args()
    for engines in (1, 8, 64):
        body = exposition(engines)
        print(f"/metrics of {engines} engines: {len(body) / 1e3:.0f} kB, read in {parse_ms(body):.2f} ms of CPU")
    spent, moments = recorded(exposition(1), told.seconds)
    print(f"recorder over {told.seconds:.0f} s: {moments} moments, {spent / told.seconds:.3%} of one core")
    size = len(encode_moment(_of_eight_cards()))
    hours = (SEGMENTS - 1) * (SEGMENT_BYTES // size) * EVERY_S / 3600
    print(
        f"a moment of 8 cards: {size} bytes; at least {hours:.0f} h in at most {SEGMENTS * SEGMENT_BYTES / 1e6:.0f} MB"
    )
    print(f"memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0


def _of_eight_cards() -> Moment:
    return Moment(
        at=1_796_023_428.25, running=256, waiting=1024, kv=0.9999, preemptions=12_345, finished=1_234_567,
        generated=1_234_567_890, prompted=12_345_678_901, hits=2_345_678_901, queries=12_345_678_901,
        steps=12_345_678, longest_finished=100_000, gpu_mib=(131_559,) * 8, gpu_total_mib=(143_156,) * 8,
        ram_mib=1_031_000,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
