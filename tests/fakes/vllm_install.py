"""An environment with a stand-in for vLLM in it, so that `trimtab up` runs whole without the real one."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

ENGINE = Path(__file__).with_name("engine.py")
MAIN = """
import os, runpy, shlex, sys

KNOWN = {"--served-model-name", "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--host", "--port"}
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
            "--api-key", os.environ["VLLM_API_KEY"], *shlex.split(os.environ.get("FAKE_ENGINE", ""))]
runpy.run_path(ENGINE, run_name="__main__")
"""


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
