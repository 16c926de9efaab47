"""Look at this host before an engine is started, judge it, and stop the start where it cannot work."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.cli.installed import present_of
from trimtab.cli.settings import dirs, lang
from trimtab.engine.command import LaunchCommand
from trimtab.engine.quantities import whole
from trimtab.errors import HostError, UsageError
from trimtab.facts.host import GIB, HostRecord, Packages, PortHolder, Wanted
from trimtab.facts.probe.engine_packages import read_packages
from trimtab.facts.probe.gpus import read_gpus
from trimtab.facts.probe.hub_settings import hub_from_environment
from trimtab.facts.probe.places import absent_in, pointers_in, weight_bytes
from trimtab.facts.probe.preflight import Asked, look
from trimtab.messages import msg
from trimtab.plan.memory.versions import default_utilization
from trimtab.plan.memory.versions import release as memory_release
from trimtab.rules.preflight import preflight
from trimtab.rules.rule import Severity
from trimtab.rules.runner import release
from trimtab.supervisor import registry
from trimtab.supervisor.ports import holder, is_free, require_address

if TYPE_CHECKING:
    from trimtab.cli.launch import Launch
    from trimtab.supervisor.environments import Engine

SWAP_USED_UNTIL = (0, 11)
WEIGHTS_HERE = ("auto", "hf", "pt", "safetensors")
"""Values of --load-format that read the weights from files of these names in the model's directory."""
CPU_SPACE = "VLLM_CPU_KVCACHE_SPACE"


def require_sound_host(
    launch: Launch, host: str, port: int | None, *, devices: tuple[str, ...] = (), force: bool
) -> None:
    """Warnings on stderr. HostError with all errors of this host for the launch; with `force` they are warnings too."""
    packages = packages_of(launch.engine, on_cpu=launch.engine.kind == "cpu")
    wanted = wanted_of(launch.command, packages, launch.cards, host, port)
    report = preflight(look_at(msgspec.structs.replace(wanted, devices=devices), packages))
    errors = []
    for found in report.findings:
        if found.severity is Severity.INFO:
            continue
        if found.severity is Severity.ERROR and not force:
            errors.append(found)
            continue
        print(f"{found.rule.code} {found.rule.name}: {found.message.text(lang())}", file=sys.stderr)
    if errors:
        said = "\n".join(f"{found.rule.code} {found.message.text(lang())}" for found in errors)
        raise HostError(
            msg("this host cannot start it: {reasons}", reasons=said),
            hint=msg("trimtab explain {code} says more; --force starts it all the same.", code=errors[0].rule.code),
        )


def look_at(wanted: Wanted, packages: Packages) -> HostRecord:
    """The record of this host for a launch."""
    gpus = read_gpus()
    state, cache = dirs().state, hub_from_environment().cache
    directory = Path(wanted.model).expanduser() if wanted.model and not wanted.from_hub else None
    return look(
        Asked(
            wanted=wanted,
            packages=packages,
            state=state,
            cache=cache,
            weights=directory if directory is not None and directory.exists() else None,
            servers={record.group: record.name for record in registry.live(state) if record.group},
            port_holder=_port_holder(wanted, state),
        ),
        gpus,
    )


def wanted_of(
    command: LaunchCommand, packages: Packages, cards: int, host: str = "127.0.0.1", port: int | None = None
) -> Wanted:
    """What the launch asks of this host; a size that is no number is left out, for lint to tell of."""
    version = release(packages.vllm or "")
    model = command.get("model") or (command.model.text if command.model else None)
    directory = Path(model).expanduser() if model else None
    local = directory is not None and directory.is_dir()
    on_cpu = packages.on_cpu or not cards
    ranks = _ranks(command)
    assert directory is not None or not local
    return Wanted(
        model=model,
        host=host,
        port=port,
        ranks=ranks,
        cards=cards,
        utilization=None if on_cpu else _number(command, "gpu-memory-utilization", utilization_of(packages)),
        weights_bytes=weight_bytes(directory) if directory is not None and local else None,
        pinned_bytes=_pinned_bytes(command, ranks, version),
        cache_bytes=_cache_bytes(command, os.environ, version) if on_cpu else 0,
        from_hub=model is not None and not local and not model.startswith((".", "/", "~")),
        pointers=pointers_in(directory) if directory is not None and local else (),
        absent=_absent(command, directory) if directory is not None and local else (),
        on_cpu=on_cpu,
    )


def _absent(command: LaunchCommand, directory: Path) -> tuple[str, ...]:
    """What the directory lacks and the command does not take from elsewhere."""
    return absent_in(
        directory,
        config=command.get("hf-config-path") is None,
        weights=command.get("load-format") in (None, *WEIGHTS_HERE),
    )


def utilization_of(packages: Packages) -> float:
    """What vLLM takes of a card where nothing is said."""
    return default_utilization(memory_release(packages.vllm or "0.0.0"))


def packages_of(engine: Engine | None, *, on_cpu: bool) -> Packages:
    """The packages of an engine; without one only whether it would run on a CPU."""
    if engine is None:
        return Packages(on_cpu=on_cpu)
    metadata = present_of(engine).metadata
    return read_packages(metadata, vllm=engine.version, python=engine.python, on_cpu=engine.kind == "cpu")


def _ranks(command: LaunchCommand) -> int:
    from trimtab.plan.ranks import ranks_of

    try:
        return ranks_of(command).here or 1
    except UsageError:
        return 1


def _pinned_bytes(command: LaunchCommand, ranks: int, version: tuple[int, ...]) -> int:
    """Host memory that is pinned: each rank's swap space and offloaded weights, and the offloaded cache of all."""
    gib = ranks * _number(command, "cpu-offload-gb", 0.0) + _number(command, "kv-offloading-size", 0.0)
    if version and version < SWAP_USED_UNTIL:
        gib += ranks * _number(command, "swap-space", 0.0)
    return int(gib * GIB)


def _cache_bytes(command: LaunchCommand, environ: Mapping[str, str], version: tuple[int, ...]) -> int:
    """The KV cache on a CPU where its size is asked for; later releases take what is left."""
    use = command.env.get(CPU_SPACE)
    text = (use.value if use is not None else environ.get(CPU_SPACE)) or ""
    given = command.get("kv-cache-memory-bytes")
    if text.isdecimal() and int(text):
        return int(text) * GIB
    if given:
        try:
            return whole("kv-cache-memory-bytes", given)
        except UsageError:
            return 0
    return 4 * GIB if version and version < (0, 14) else 0


def _number(command: LaunchCommand, name: str, default: float) -> float:
    try:
        return float(command.get(name) or default)
    except ValueError:
        return default


def _port_holder(wanted: Wanted, state: Path) -> PortHolder | None:
    """Who has the wanted port: a process that listens, or a server of Trimtab that is still being started."""
    if wanted.port is None:
        return None
    server = next((record.name for record in registry.live(state) if record.port == wanted.port), None)
    if is_free(wanted.host, wanted.port):
        return PortHolder(server=server) if server is not None else None
    try:
        require_address(wanted.host)
    except HostError:
        return None  # no address of this host: the start itself says so
    found = holder(wanted.port)
    if found is None:
        return None
    return PortHolder(pid=found.pid, command=found.command, server=server)


def with_hub(wanted: Wanted) -> Wanted:
    """The same, with what the hub and its cache say of the model: one question, bounded in time."""
    from trimtab.facts.probe.cached import CachedRepo
    from trimtab.facts.probe.hub_settings import is_model_id
    from trimtab.facts.probe.hub_token import ask_about

    if not wanted.from_hub or wanted.model is None or not is_model_id(wanted.model):
        return wanted
    hub = hub_from_environment()
    cached = CachedRepo(hub.cache, wanted.model).snapshot("main", whole=True) is not None
    if cached or hub.offline or hub.modelscope:
        return msgspec.structs.replace(wanted, cached=cached)
    about = ask_about(wanted.model, hub)
    return msgspec.structs.replace(wanted, cached=False, gated=about.gated, fetch_bytes=about.size_bytes)
