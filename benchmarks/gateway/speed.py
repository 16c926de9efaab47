"""The gateway beside nginx, vllm-router and LiteLLM, in paired rounds whose order is shuffled; one process each.

    python benchmarks/gateway/speed.py [--quick] [--rounds 9] [--seconds 3] [--peers nginx,vllm-router] [--out FILE]

Client and back ends run on core 0, what is measured on core 1. `direct` is the client at a back end, without a
gateway: it shows that neither of them is the bottleneck. Ratios are taken to nginx in the same round. Others' work on
the machine is measured along; a moment in which it passes --others of a core is measured again, and the quietest of
--tries is kept.
Exit code 1 when a floor of benchmarks/gateway/report.py was missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import peers
import report
from load import CELLS, Cell, measure

DATA = Path(__file__).parents[1] / "data" / "gateway_speed.jsonl"
INSTALLED = Path.home() / ".cache" / "trimtab-bench"
SLOW = {"litellm": ("plain:16", "stream:64")}  # the cells that it can be asked for at all


def start_all(options: argparse.Namespace, place: Path, back_ends: tuple[int, int]) -> list[peers.Started]:
    """The peers that can be had, and `direct`."""
    started = [peers.Started("direct", back_ends[0], "none", 0, 0.0, "")]
    makers = {name: peers.PEERS[name] for name in options.peers}
    makers |= {name: partial(peers.gateway, trimtab=program) for name, program in options.also.items()}
    for name, maker in makers.items():
        folder = place / name
        folder.mkdir()
        folder.chmod(0o755)
        port = peers.free_port()
        try:
            started.append(peers.start(name, maker(port, back_ends, folder, options.installed), port, folder))
        except peers.Missing as missing:
            print(f"without {name}: {missing}", file=sys.stderr)
    return started


def run(options: argparse.Namespace, running: list[peers.Started], back_end: int) -> list[dict[str, Any]]:
    """All rounds; one row for each cell and peer of each round."""
    rows = []
    for number in range(options.rounds):
        for cell in options.cells:
            order = [peer for peer in running if cell.name in SLOW.get(peer.name, (cell.name,))]
            random.shuffle(order)
            for peer in order:
                peer.stop_others_of(running)
                found = quietest(options, peer, back_end, cell)
                rows.append({"round": number, "cell": cell.name, "peer": peer.name, **found})
            told = " ".join(f"{row['peer']} {report.short(row)}" for row in rows[-len(order) :])
            print(f"round {number + 1}/{options.rounds} {cell.name}: {told}", file=sys.stderr)
    return rows


def quietest(options: argparse.Namespace, peer: peers.Started, back_end: int, cell: Cell) -> dict[str, Any]:
    """The measured moment in which others worked least."""
    best: dict[str, Any] = {}
    seconds = 9.0 if cell.mode == "hold" else options.seconds
    for _ in range(options.tries):
        found = measure(peer.port, peer.pid, back_end, cell, key=peer.key, warm_s=options.warm, seconds=seconds)
        if not best or found.get("others", 0.0) < best.get("others", 0.0):
            best = found
        if best.get("others", 0.0) <= options.others:
            break
    return best


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s, one try, LiteLLM left out")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="of each measured moment")
    parser.add_argument("--warm", type=float, default=0.5)
    parser.add_argument("--tries", type=int)
    parser.add_argument("--others", type=float, default=0.06, help="cores that others may use")
    parser.add_argument("--peers", default="", help=f"of {','.join(peers.PEERS)}")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=TRIMTAB", help="another installed gateway")
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--installed", type=Path, default=INSTALLED, help="where the peers are, or will be")
    parser.add_argument("--out", type=Path, help=f"for the rows; {DATA.name} in benchmarks/data unless --quick")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 9)
    options.seconds = options.seconds or (1.0 if options.quick else 3.0)
    options.tries = options.tries or (1 if options.quick else 3)
    usual = [name for name in peers.PEERS if not options.quick or name != "litellm"]
    options.peers = options.peers.split(",") if options.peers else usual
    options.cells = [CELLS[name] for name in options.cells.split(",")]
    options.also = dict(pair.split("=", 1) for pair in options.also)
    return options


def main() -> int:
    options = parse()
    back_end, ports = peers.start_back_ends()
    running: list[peers.Started] = []
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as place:
        Path(place).chmod(0o755)  # nginx's worker is another user
        try:
            running = start_all(options, Path(place), ports)
            rows = run(options, running, back_end.pid)
        finally:
            for peer in running:
                peers.stop(peer.pid)
            back_end.kill()
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "cpu": report.cpu_name(),
        "cores": os.cpu_count(), "python": platform.python_version(), "seconds": options.seconds,
        "peers": {p.name: {"version": p.version, "start_s": round(p.start_s, 3)} for p in running if p.pid},
    }  # fmt: skip
    out = options.out or (None if options.quick else DATA)
    if out is not None:
        out.write_text("".join(json.dumps(row) + "\n" for row in [about, *rows]))
    print(report.table(about, rows))
    verdicts = report.verdicts(about, rows)
    print(report.told(verdicts))
    return 0 if all(v.floor_met for v in verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
