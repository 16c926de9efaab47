"""An environment with a stand-in for vLLM in it, so that `trimtab up` runs whole without the real one."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

ENGINE = Path(__file__).with_name("engine.py")
MAIN = """
import os, runpy, shlex, sys

KNOWN = {"--served-model-name", "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--host", "--port",
         "--shutdown-timeout"}
SWITCHES = {"--enforce-eager"}
words = sys.argv[1:]
if words == ["--version"]:
    print("0.32.0")
    sys.exit()
assert words[0] == "serve", words
given = dict(zip(words[2::1], words[3::1]))
unknown = [w for w in words[2:] if w.startswith("--") and w not in KNOWN | SWITCHES]
if unknown:
    print("usage: vllm serve [model_tag] [options]", file=sys.stderr)
    print("vllm: error: unrecognized arguments: " + " ".join(unknown), file=sys.stderr)
    sys.exit(2)
sys.argv = ["engine", "--port", given["--port"], "--model", given.get("--served-model-name", words[1]),
            "--api-key", os.environ["VLLM_API_KEY"], "--context", given.get("--max-model-len", "0"),
            "--shutdown-timeout", given.get("--shutdown-timeout", "0"),
            *shlex.split(os.environ.get("FAKE_ENGINE", ""))]
runpy.run_path(ENGINE, run_name="__main__")
"""


PARSER = """
import argparse

def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--max-num-seqs", type=int, default=7)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.5)
    parser.add_argument("--of-a-plug-in", type=int, choices=[1, 2])
    return parser
"""


def add_parser(python: Path, text: str = PARSER) -> None:
    """Give the stand-in an argument parser with an extra flag and two changed defaults, or the one in `text`."""
    site = next(python.parent.parent.glob("lib/python3*/site-packages"))
    (site / "vllm" / "__init__.py").write_text('__version__ = "0.32.0+fork"\n')
    for folder in ("utils", "entrypoints/common"):
        (site / "vllm" / folder).mkdir()
        (site / "vllm" / folder / "__init__.py").touch()
    (site / "vllm/utils/argparse_utils.py").write_text(
        "import argparse\nFlexibleArgumentParser = argparse.ArgumentParser\n"
    )
    (site / "vllm/entrypoints/common/cli_args.py").write_text(text)


def tuned(python: Path) -> Path:
    """The stand-in whose speed follows its flags, in place of the other one."""
    main = next(python.parent.parent.glob("lib/python3*/site-packages/vllm/entrypoints/cli/main.py"))
    engine = ENGINE.with_name("tuned_engine.py")
    main.write_text(f"import runpy\nrunpy.run_path({str(engine)!r}, run_name='__main__')\n")
    return python


def make(directory: Path) -> Path:
    """A virtual environment whose `vllm` is the fake engine (knobs in FAKE_ENGINE); its Python."""
    venv.create(directory, with_pip=False, symlinks=True)
    minor = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = directory / "lib" / minor / "site-packages"
    package = site / "vllm" / "entrypoints" / "cli"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "main.py").write_text(f"ENGINE = {str(ENGINE)!r}\n{MAIN}")
    info = site / "vllm-0.32.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
    return directory / "bin" / "python"
