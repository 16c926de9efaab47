"""A Python package that this start needs is absent or does not fit.

What it does: reads import errors and vLLM's and Transformers' requests to install a package, and complaints about its
    version.
Why it matters: options and models need packages that vLLM does not bring: bitsandbytes, OpenTelemetry, flashinfer,
    tensorizer, timm.
How to fix: install the package that the message names into the server's environment (in a container: into the image),
    in the version it asks for.
When to ignore: when the import error is caught and the start goes on.
Sources: vllm/utils/import_utils.py (PlaceholderModule), vllm/model_executor/layers/quantization, vLLM 0.4 to 0.33;
    transformers/dynamic_module_utils.py (check_imports).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"ModuleNotFoundError: No module named '(?P<name>(?!vllm\.|transformers\.|fcntl|resource|uvloop|"
        r"ray\b)[\w.-]+)'"
    ),
    r"type object '(?P<name>TokenizerInfo|\w*Grammar\w*)' has no attribute",
    r"'FieldInfo' object has no attribute '(?P<name>required)'",
    r"requires the following packages that were not found in your environment: (?P<name>[\w, .-]+?)\.? ",
    (
        r"(?:needs|requires|[Pp]lease use) (?:the )?`?(?P<name>(?!ray|vllm|torch\b|transformers|CUDA|"
        r"cuda)[a-z]\w+)`? ?(?:package|library|version|>=|[Ff]or)"
    ),
    r"requires (?P<name>intel_extension_for_pytorch)",
    r"(?P<name>FlashInfer|DeepGEMM|DeepEP|\w+) (?:backend )?is not available(?: or outdated)?\. Please install",
    r"OpenTelemetry (?:is not available|packages)",
    (
        r"[Pp]lease install (?P<name>vllm\[\w+\]|(?!vLLM|[Rr]ay\b|the )[\w\[\]-]+)[^ ]*(?:>=\S+)? (?:via|for|by|"
        r"to use|with|first)"
    ),
    r"`pip install '?(?P<name>(?!ray\b|vllm|httpx\[socks)[\w\[\]>=<.-]+)'?`",
    (
        r"'(?P<name>(?!ray|socksio)\w[\w-]*)'(?: (?:package|module|library))? is not installed|"
        r"(?P<package>(?!Ray|ray)\w[\w-]*) (?:module|package|"
        r"library) (?:was not found|is not installed|could not be (?:found|imported))"
    ),
    (
        r"[Pp]ackage '?(?P<name>(?!vllm)[\w-]+)'? (?:is not installed|not found)|\b(?P<package>(?!Ray\b|"
        r"ray\b|(?:package|module|library) )\w[\w-]+) is not installed\b"
    ),
    r"(?P<name>\w[\w-]*) version is wrong",
    (
        r"A module that was compiled using NumPy 1\.x cannot be run in NumPy|numpy\.core\.multiarray failed to "
        r"import|Failed to initialize NumPy|_ARRAY_API not found|numpy\.dtype size changed|Numba needs NumPy"
    ),
    (
        r"(?P<name>[\w-]+)[=<>!\d., ]+ is required (?:for a normal functioning of this module, )?but (?:found|\S+ "
        r"is installed)"
    ),
    r"VersionConflict|ContextualVersionConflict|DistributionNotFound|PackageNotFoundError",
    r"(?P<name>nixl)\._bindings\.\w+: NIXL_ERR_(?:BACKEND|NOT_FOUND|NOT_SUPPORTED)",
    r"(?P<name>NIXL|UCX|LMCache|DeepEP|pplx\w*|nvshmem|mooncake) is not available$",
    r"(?P<name>Arctic Inference) is required",
)
SHADOWED = r"cannot import name '\w+' from '(?P<name>vllm)' \((?:unknown location|(?!.*site-packages|.*dist-packages))"
"""A file or directory of that name in the working directory stands before the package."""
OF_ANOTHER_VLLM = (
    r"cannot import name '\w+' from '(?P<name>vllm\.[\w.]+)'",
    r"No module named '(?P<name>vllm\.(?!_|entrypoints)[\w.]+)'",
    r"(?:Async)?EngineArgs\.__init__\(\) got an unexpected keyword argument '(?P<name>\w+)'",
)
"""A plugin or library beside vLLM asks for what this version does not have under that name."""
UNKNOWN_ARGUMENT = (
    r"TypeError: [\w.]+\(\) (?:got an unexpected keyword argument (?!'num_spec)|missing \d+ required|"
    r"takes (?:from )?\d+)",
)
HINTS = (
    SHADOWED,
    (
        r"^\w+(?:Error|Exception): .{0,200}No module named '(?P<name>(?!vllm|transformers|ray\b|resource|"
        r"fcntl)[\w.]+)'"
    ),
    r"cannot import name '\w+' from '?(?P<name>(?!transformers|vllm|torch\b)\w+)",
    r"ImportError: .*requires the (?P<name>\w+) library but it was not found",
)


def check(context: LogContext) -> Iterator[Finding]:
    grades = ((SURE, SAYS), (LIKELY, HINTS), (LIKELY, OF_ANOTHER_VLLM), (HUNCH, UNKNOWN_ARGUMENT))
    found = words.best(context, *grades)
    if found is None:
        return
    hit, confidence = found
    name = words.group(hit, "name") or words.group(hit, "package")
    if name.partition(".")[0] == "vllm" and hit.match.re.pattern not in (SAYS[0], SHADOWED, *OF_ANOTHER_VLLM):
        return
    if name:
        message = msg(
            "the Python package {name} is missing or does not fit: {said}",
            zh="Python 包 {name} 缺失或版本不合适：{said}",
            name=name,
            said=words.said(hit),
        )
    else:
        message = msg(
            "a Python package is missing or does not fit: {said}",
            zh="某个 Python 包缺失或版本不合适：{said}",
            said=words.said(hit),
        )
    yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG312",
    name="package-missing-or-unfit",
    severity=Severity.ERROR,
    summary=msg(
        "A Python package that this start needs is absent or does not fit.", zh="启动所需的 Python 包缺失或版本不合适。"
    ),
    check=check,
    cause=Cause.DEPENDENCY_UNMET,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/import_utils.py",),
    bad=(
        Example(
            "ImportError: Please install bitsandbytes>=0.46.1 via `pip install bitsandbytes>=0.46.1` to use "
            "bitsandbytes quantizer.\n"
        ),
        Example("ModuleNotFoundError: No module named 'timm'\n"),
        Example(
            "ImportError: This modeling file requires the following packages that were not found in your "
            "environment: einops, tiktoken. Run `pip install einops tiktoken`\n"
        ),
    ),
    good=(Example("ModuleNotFoundError: No module named 'vllm._C'\n"),),
)
