"""Values for the Helm chart of vLLM's production stack.

Source: helm/values.yaml, values.schema.json and templates/deployment-vllm-multi.yaml of vllm-stack 0.1.12.
"""

from __future__ import annotations

import math
from typing import Any

from trimtab.engine.command import FlagUse
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.render.images import GPU_RESOURCES, image
from trimtab.plan.render.k8s import SHM_MANY, literal
from trimtab.plan.render.launch import DEFAULT_PORT, Launch
from trimtab.plan.render.yamltext import dump

KEYS: dict[str, tuple[str, type]] = {
    "max-model-len": ("maxModelLen", int),
    "dtype": ("dtype", str),
    "tensor-parallel-size": ("tensorParallelSize", int),
    "max-num-seqs": ("maxNumSeqs", int),
    "gpu-memory-utilization": ("gpuMemoryUtilization", float),
}
"""Flag -> the chart's key for it and its type; all other flags are `extraArgs`."""
CACHE = "/data"
"""Where the chart mounts the claim and keeps the hub's cache."""


def render(launch: Launch) -> str:
    """The file for `helm install -f`. UsageError where the chart cannot start it: a model of this machine's disk."""
    if launch.is_path and not launch.model.startswith(f"{CACHE}/"):
        raise UsageError(
            msg("the chart mounts its storage at {mount}; the model lies at {path}", mount=CACHE, path=launch.model),
            hint=msg("Plan for a model id of the hub, or for the path under {mount} in the claim.", mount=CACHE),
        )
    repository, _, tag = image(launch).rpartition(":")
    model = {
        "name": launch.name,
        "repository": repository,
        "tag": tag,
        "modelURL": launch.model,
        "replicaCount": 1,
        "requestCPU": 2 * (2 + launch.cards),  # docs/configuration/optimization.md: the least vLLM runs well with
        "requestMemory": f"{math.ceil(launch.weights_gib / 4) + 16}Gi",
        "requestGPU": launch.cards if launch.vendor in GPU_RESOURCES else 0,
        **({"requestGPUType": GPU_RESOURCES["amd"]} if launch.vendor == "amd" else {}),
        "pvcStorage": f"{math.ceil(launch.weights_gib * 1.2) + 10}Gi",
        "shmSize": SHM_MANY,
        "vllmConfig": _config(launch),
        **({"env": [{"name": n, "value": literal(v)} for n, v in launch.env.items()]} if launch.env else {}),
    }
    return dump([{"servingEngineSpec": _engine(launch, model)}], [
        launch.about, "Chart vllm-stack of vllm-project/production-stack: helm install NAME vllm/vllm-stack -f FILE",
        "A gated model: hf_token beside modelURL; a key for clients: vllmApiKey beside modelSpec.",
    ])  # fmt: skip


def _engine(launch: Launch, model: dict[str, Any]) -> dict[str, Any]:
    tries = math.ceil(launch.startup_s / 10)
    port = launch.port
    health = {"path": "/health", "port": port}
    engine: dict[str, Any] = {} if launch.vendor == "nvidia" else {"runtimeClassName": ""}
    if port != DEFAULT_PORT:
        engine["containerPort"] = port
    probe = {"initialDelaySeconds": 15, "periodSeconds": 10, "failureThreshold": tries, "httpGet": health}
    others = {name: {"httpGet": health} for name in ("livenessProbe", "readinessProbe") if port != DEFAULT_PORT}
    return {**engine, "startupProbe": probe, **others, "modelSpec": [model]}


def _config(launch: Launch) -> dict[str, Any]:
    """The chart says --no-enable-prefix-caching unless it is told otherwise, so what vLLM would do is spelt out."""
    config: dict[str, Any] = {"enablePrefixCaching": launch.prefix_caching}
    more: list[str] = []
    for flag in launch.flags:
        key = KEYS.get(flag.dotted)
        if key is not None and flag.value is not None and not flag.negated and key[0] not in config:
            config[key[0]] = key[1](flag.value)
        elif flag.dotted not in ("enable-prefix-caching", "host", "port"):
            more += [literal(word) for word in _words(flag)]
    if launch.cards > 1:  # the chart gives /dev/shm to launches that name the tensor size only
        config.setdefault("tensorParallelSize", 1)
    return {**config, "extraArgs": more}


def _words(flag: FlagUse) -> list[str]:
    spelt = f"--{'no-' if flag.negated else ''}{flag.dotted}"
    if flag.values and flag.values[0].startswith("-"):
        return [f"{spelt}={flag.value}"]
    return [spelt, *flag.values]
