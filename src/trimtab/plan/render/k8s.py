"""Kubernetes manifests: a Deployment with its volume claim and Service; over several machines a LeaderWorkerSet.

Sources: docs/deployment/k8s.md and docs/deployment/frameworks/lws.md, vLLM 0.33.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.render.images import GPU_RESOURCES, HUB_CACHE, KEYS, image
from trimtab.plan.render.launch import Launch
from trimtab.plan.render.mp import node_flags, require_nnodes
from trimtab.plan.render.yamltext import dump

SHM_ONE, SHM_MANY = "2Gi", "8Gi"
"""/dev/shm of one rank and of several, as the two examples of docs/deployment/k8s.md have it."""
KV_SPACE = "VLLM_CPU_KVCACHE_SPACE"


def render(launch: Launch) -> str:
    """The manifests for `kubectl apply -f`."""
    launch.require_absolute()
    if ":" in launch.model and launch.is_path:
        raise UsageError(
            msg("the model's path holds a colon, which Kubernetes takes in no mount path: {path}", path=launch.model),
            hint=msg("Rename the directory."),
        )
    about = [
        launch.about,
        f"Secrets, where needed: kubectl create secret generic {launch.name} --from-literal=VLLM_API_KEY=... "
        "--from-literal=HF_TOKEN=...",
    ]
    if launch.is_path:
        about.append(f"The claim {launch.name}-model holds the model's files; fill it before the first start.")
    if launch.nodes > 1:
        require_nnodes(launch)
        about.append("Needs the LeaderWorkerSet controller in the cluster, and storage that all machines can mount.")
        return dump([_claim(launch, "ReadWriteMany"), _workers(launch), _service(launch, _group(launch))], about)
    selector = {"app.kubernetes.io/name": launch.name}
    return dump([_claim(launch, "ReadWriteOnce"), _deployment(launch, selector), _service(launch, selector)], about)


def literal(text: str) -> str:
    """A text in which Kubernetes replaces no $(NAME)."""
    return text.replace("$(", "$$(")


def _claim(launch: Launch, mode: str) -> dict[str, Any]:
    size = math.ceil(launch.weights_gib * 1.2) + 10
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{launch.name}-model"},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": f"{size}Gi"}}},
    }


def _deployment(launch: Launch, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": launch.name, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": launch.startup_s + 600,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(launch, launch.arguments, serves=True)},
        },
    }


def _workers(launch: Launch) -> dict[str, Any]:
    node = node_flags(launch.nodes, "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)")
    leader = _pod(launch, launch.arguments, node, serves=True)
    worker = _pod(launch, launch.arguments, [*node, "--headless"], serves=False)
    template = {"size": launch.nodes, "restartPolicy": "RecreateGroupOnPodRestart"}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": launch.name},
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {
                **template,
                "leaderTemplate": {"metadata": {"labels": {"role": "leader"}}, "spec": leader},
                "workerTemplate": {"spec": worker},
            },
        },
    }


def _group(launch: Launch) -> dict[str, str]:
    return {"leaderworkerset.sigs.k8s.io/name": launch.name, "role": "leader"}


def _service(launch: Launch, selector: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": launch.name},
        "spec": {
            "selector": selector,
            "ports": [{"name": "http", "port": launch.port, "targetPort": launch.port}],
            "type": "ClusterIP",
        },
    }


def _pod(launch: Launch, words: Sequence[str], more: Sequence[str] = (), *, serves: bool) -> dict[str, Any]:
    """The pod. Service links are off: of a Service named vllm they make VLLM_PORT a URL, at which vLLM stops."""
    container = {
        "name": "vllm",
        "image": image(launch),
        "command": ["vllm", "serve"],
        "args": [*map(literal, words), *more],
        "env": [*({"name": n, "value": literal(v)} for n, v in launch.env.items()), *map(_secret(launch), KEYS)],
        **({"ports": [{"name": "http", "containerPort": launch.port}], **_probes(launch)} if serves else {}),
        "resources": _resources(launch),
        "volumeMounts": [
            {"name": "model", "mountPath": launch.model if launch.is_path else HUB_CACHE},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    size = SHM_MANY if launch.cards_per_node > 1 else SHM_ONE
    return {
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [
            {"name": "model", "persistentVolumeClaim": {"claimName": f"{launch.name}-model"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}},
        ],
    }


def _secret(launch: Launch) -> Any:
    def entry(key: str) -> dict[str, Any]:
        reference = {"name": launch.name, "key": key, "optional": True}
        return {"name": key, "valueFrom": {"secretKeyRef": reference}}

    return entry


def _probes(launch: Launch) -> dict[str, Any]:
    """The startup probe waits for a slow load; only after it do the others count (the production-stack's figures)."""
    check = {"httpGet": {"path": "/health", "port": "http"}}
    return {
        "startupProbe": {**check, "periodSeconds": 10, "failureThreshold": math.ceil(launch.startup_s / 10)},
        "livenessProbe": {**check, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 5},
        "readinessProbe": {**check, "periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 5},
    }


def _resources(launch: Launch) -> dict[str, Any]:
    resource = GPU_RESOURCES.get(launch.vendor)
    if resource is not None:
        return {"limits": {resource: str(launch.cards_per_node)}}
    needed = math.ceil(launch.weights_gib + sum(int(v) for n, v in launch.env.items() if n == KV_SPACE)) + 4
    return {"requests": {"memory": f"{needed}Gi"}}
