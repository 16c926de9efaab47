"""What the forms are made for takes them: Docker Compose, the Kubernetes API's schemas, systemd, the chart's schema."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from tests.plan.render.plans import PLANS, TWO_MACHINES
from trimtab.plan.planner import Plan
from trimtab.plan.render.forms import render
from trimtab.plan.render.images import image_arguments
from trimtab.plan.render.launch import launch_of

SCHEMAS = Path(__file__).parents[2] / "fixtures" / "schemas"
KUBERNETES = "1.33"
IN_ONE_CLUSTER = {name: plan for name, plan in PLANS.items() if ":" not in plan.command.argv()[2]}
IN_CHART = {name: p for name, p in PLANS.items() if not p.command.argv()[2].startswith("/") or name == "in-claim"}


def documents(text: str, version: str = "1.2") -> list[Any]:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    return list(yaml.load_all(io.StringIO(text)))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_docker_compose_resolves_the_file_to_the_planned_command(plan: Plan, tmp_path: Path) -> None:
    launch = launch_of(plan)
    file = tmp_path / "compose.yaml"
    file.write_text(render("compose", launch), encoding="utf-8")
    tool = Path(sys.executable).parent / "docker-compose"
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "VLLM_API_KEY": "k$1"}
    done = subprocess.run(
        [tool, "-f", file, "config", "--format", "json", "--no-interpolate"], env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tool, "-f", file, "config", "--format", "json"], env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    # What it prints is itself a Compose file: a dollar sign stands there doubled.
    service = json.loads(done.stdout.replace(b"$$", b"$"))["services"]["vllm"]
    assert service["command"] == image_arguments(launch)
    assert service["environment"] == {**plan.env, "VLLM_API_KEY": "k$1", "HF_TOKEN": None}
    assert service["ports"][0]["published"] == str(launch.port)
    if launch.is_path:
        assert [(v["source"], v["target"]) for v in service["volumes"]] == [(launch.model, launch.model)]
    if launch.vendor == "nvidia":
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert (device["count"], device["capabilities"]) == (launch.cards, ["gpu"])


@pytest.mark.parametrize("plan", IN_ONE_CLUSTER.values(), ids=IN_ONE_CLUSTER)
def test_kubernetes_takes_the_manifests(plan: Plan) -> None:
    launch = launch_of(plan)
    found = documents(render("k8s", launch))
    assert [d["kind"] for d in found] == ["PersistentVolumeClaim", "Deployment", "Service"]
    for document in found:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    assert found == documents(render("k8s", launch), "1.1")
    pod = found[1]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    replaced = [word.replace("$$(", "$(") for word in container["args"]]
    assert [*container["command"], *replaced] == plan.command.argv()
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 600 + launch.weights_gib / 0.1
    assert pod["enableServiceLinks"] is False


def test_kubernetes_takes_the_leader_and_its_workers() -> None:
    claim, group, service = documents(render("k8s", launch_of(TWO_MACHINES)))
    for document in (claim, service):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    jsonschema.validate(group, closed(json.loads((SCHEMAS / "leaderworkerset-v1.json").read_text())))
    template = group["spec"]["leaderWorkerTemplate"]
    for name in ("leaderTemplate", "workerTemplate"):
        pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "m"}, "template": template[name]}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)
        (container,) = template[name]["spec"]["containers"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert service["spec"]["selector"]["role"] == template["leaderTemplate"]["metadata"]["labels"]["role"]


def closed(schema: Any) -> Any:
    """The schema without room for unknown keys, as the API server has it under strict validation."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    return {**found, "additionalProperties": False} if isinstance(found.get("properties"), dict) else found


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_systemd_takes_the_unit(plan: Plan, tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    assert tool, "systemd-analyze is missing: run scripts/install"
    file = tmp_path / "vllm-test.service"
    file.write_text(render("systemd", launch_of(plan)), encoding="utf-8")
    done = subprocess.run([tool, "verify", "--man=no", file], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "vllm-test" in line] == []
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("plan", IN_CHART.values(), ids=IN_CHART)
def test_the_chart_takes_the_values(plan: Plan) -> None:
    launch = launch_of(plan)
    text = render("helm-values", launch)
    (values,) = documents(text)
    assert documents(text, "1.1") == [values]
    schema = json.loads((SCHEMAS / "vllm-stack-values.json").read_text())
    jsonschema.validate(values, closed(schema))
    jsonschema.validate(values["servingEngineSpec"]["modelSpec"], {
        "items": {"required": ["name", "repository", "tag", "modelURL", "replicaCount", "requestCPU", "requestMemory"]}
    })  # fmt: skip


def test_the_chart_probes_the_port_that_is_asked_for() -> None:
    (values,) = documents(render("helm-values", launch_of(PLANS["hub-port"])))
    engine = values["servingEngineSpec"]
    assert engine["containerPort"] == 9000
    assert {engine[f"{name}Probe"]["httpGet"]["port"] for name in ("startup", "liveness", "readiness")} == {9000}
    assert "--port" not in engine["modelSpec"][0]["vllmConfig"]["extraArgs"]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_yaml_1_1_and_1_2_read_the_configuration_alike(plan: Plan) -> None:
    text = render("config", launch_of(plan))
    assert documents(text, "1.1") == documents(text, "1.2")
