"""`trimtab up`: from a model (or a command, a plan, the demo) to a verified endpoint that stays up until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from trimtab.cli import draining, options
from trimtab.cli.cards import Cards
from trimtab.cli.examination import Doctor, show_diagnosis
from trimtab.cli.format import plan as plan_format
from trimtab.cli.keeping import Keep, Recovered, asked_bounds, memo_of, pins_of, recall
from trimtab.cli.launch import Launch, Wanted, demo_launch, launch_of
from trimtab.cli.notes import Notes
from trimtab.cli.precheck import check_before_start
from trimtab.cli.preflight import require_sound_host
from trimtab.cli.progress import drawn
from trimtab.cli.settings import dirs, lang
from trimtab.cli.starting import Starting
from trimtab.cli.subject import resolve_subject
from trimtab.cli.unit import unit_of
from trimtab.cli.watching import every, listeners_of, note_plan, watching
from trimtab.engine.command import LaunchCommand
from trimtab.engine.redaction import hide_secrets
from trimtab.engine.registry import ServerRecord
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.pinned import flags_of
from trimtab.supervisor import notify, registry
from trimtab.supervisor.detach import detach as start_detached
from trimtab.supervisor.devices import Card, choose_devices
from trimtab.supervisor.launching import Callbacks, LaunchSpec, failure
from trimtab.supervisor.ports import require_address, require_free
from trimtab.supervisor.stopping import stop_on_signals
from trimtab.supervisor.supervisor import supervise

if TYPE_CHECKING:
    from trimtab.cli.up_gateway import Gateway

LOOPBACK, GATEWAY_PORT = "127.0.0.1", 8080
NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # ours, not the engine's


class Place(msgspec.Struct, frozen=True):
    """Where the server shall be: its name, address and cards, as far as the user says."""

    name: str | None
    host: str
    port: int | None
    devices: tuple[str, ...]
    share: bool
    force: bool = False
    api_key: str = ""  # "": the command's, the environment's or a new one
    gateway: tuple[str, int] | None = None  # where one listens, in front of the engine


def run(
    ctx: typer.Context,
    subject: options.Subject = None,
    demo: options.Demo = False,
    name: options.Name = None,
    host: options.Host = LOOPBACK,
    port: options.Port = None,
    devices: options.Devices = None,
    share: options.Share = False,
    engine: options.EngineName = None,
    engine_python: options.EnginePython = None,
    context: options.Context = None,
    concurrency: options.Concurrency = None,
    check: options.VerifyWhenReady = True,
    detach: options.Detach = False,
    unit: options.Unit = False,
    force: options.Force = False,
    restart: options.Restart = True,
    max_restarts: options.MaxRestarts = 5,
    drain: options.DrainBound = 25.0,
    hang: options.HangBound = 180.0,
    log_size: options.LogSize = 64,
    on_event: options.OnEvent = None,
    webhook: options.Webhook = None,
    self_heal: options.SelfHeal = "off",
    bounds: options.KeepBounds = None,
    pins: options.PinnedFlags = None,
    max_steps: options.MaxSteps = 3,
    gateway: options.WithGateway = None,
    gateway_port: options.GatewayPort = None,
) -> int:
    """Serve a model: plan, start vLLM, verify, print base URL, key and model id, and stay until Ctrl-C."""
    if demo and subject is not None:
        raise UsageError(
            msg("--demo brings its own model; {subject} is another", subject=subject),
            hint=msg("Leave out one of the two."),
        )
    chosen = _chosen(devices)
    place = _place(name, host, port, chosen, share=share, force=force)
    keep = Keep(
        restart, max_restarts, drain, hang, log_size, listeners_of(on_event, webhook), self_heal,
        asked_bounds(bounds, context, concurrency), pins_of(pins, ctx.obj), max_steps,
    )  # fmt: skip
    keep.require_sound()
    if unit:
        print(unit_of(subject if ctx.obj is None else None, keep, sys.argv[1:]), end="")
        return 0
    if detach:
        return start_detached(sys.argv[1:], dirs().state)
    recovered = recall(subject) if subject is not None and ctx.obj is None and not Path(subject).exists() else None
    if recovered is not None:
        door = _door(gateway, gateway_port, host, recovered.memo.gateway)
        place = _behind(_former(place, recovered), door)
        return serve(recovered.launch, place, keep.with_former(recovered.memo), check=check)
    place = _behind(place, _door(gateway, gateway_port, host, None))
    wanted = Wanted(engine, engine_python, context, concurrency, chosen)
    launch = _prepared(subject, ctx.obj, wanted, demo=demo)
    if launch.plan is None or ctx.obj:  # a plan's own flags are known to fit
        check_before_start(launch)
    return serve(launch, place, keep, check=check)


def _place(
    name: str | None, host: str, port: int | None, devices: tuple[str, ...], *, share: bool, force: bool
) -> Place:
    """Refuses, before anything is downloaded, what is no name, no address of this host, or a port that is taken."""
    if name is not None:
        registry.directory(dirs().state, name)
    if not host.strip():
        raise UsageError(msg("--host is empty"), hint=msg("Name an address of this host, such as 127.0.0.1."))
    require_address(host)
    if port is not None:
        require_free(host, port)
    return Place(name, host, port, devices, share, force)


def _door(asked: bool | None, port: int | None, host: str, former: tuple[str, int] | None) -> tuple[str, int] | None:
    """Where the gateway shall listen: as the command line says, else as before; None without one."""
    if not (former is not None if asked is None else asked):
        return None
    before = former or (LOOPBACK, GATEWAY_PORT)
    return host if host != LOOPBACK else before[0], port or before[1]


def _behind(place: Place, door: tuple[str, int] | None) -> Place:
    """The gateway takes the address that was asked for; the engine stays on this host."""
    if door is None:
        return place
    if place.port == door[1]:
        raise UsageError(
            msg("the engine and the gateway in front of it cannot both listen on port {port}", port=door[1]),
            hint=msg("Name two: --port N for the engine, --gateway-port N for the gateway."),
        )
    require_free(*door)
    return msgspec.structs.replace(place, host=LOOPBACK, gateway=door)


def _former(place: Place, recovered: Recovered) -> Place:
    """Name, address, cards and key of before, but for what the command line says. UsageError while it runs."""
    memo = recovered.memo
    registry.require_ended(dirs().state, place.name or recovered.name)
    return Place(
        name=place.name or recovered.name,
        host=place.host if place.host != LOOPBACK else memo.host,
        port=place.port or memo.port,
        devices=place.devices or memo.devices,
        share=place.share,
        force=place.force,
        api_key=recovered.api_key,
    )


def _chosen(devices: str | None) -> tuple[str, ...]:
    """The cards of --devices. UsageError when it names none, HostError when this host has none at all."""
    if devices is None:
        return ()
    chosen = tuple(d.strip() for d in devices.split(",") if d.strip())
    if not chosen:
        raise UsageError(
            msg("--devices names no card"), hint=msg("Name cards that nvidia-smi -L lists, or leave it out.")
        )
    from trimtab.facts.probe.gpus import read_gpus

    if not read_gpus().cards:
        choose_devices((), len(chosen), {}, wanted=chosen)
    return chosen


def _prepared(subject: str | None, rest: list[str] | None, wanted: Wanted, *, demo: bool) -> Launch:
    """The launch, with everything it needs on this disk; progress on stderr meanwhile."""
    if demo:
        with drawn(lang()) as show:
            return demo_launch(show, flags_of(rest or ()), wanted)
    return launch_of(resolve_subject(subject, rest), wanted, Notes(lang()))


def serve(launch: Launch, place: Place, keep: Keep, *, check: bool) -> int:
    """Start the engine under supervision and stay; 0 when told to stop. EngineError when it failed or crashed."""
    host, port = _address(launch.command, place)
    require_sound_host(launch, host, port, devices=place.devices, force=place.force)
    if launch.plan is not None:
        print(_shown(launch, lang()), flush=True)
    wish = registry.Wish(
        model=launch.served_model,
        host=host,
        port=port,
        name=place.name,
        api_key=place.api_key or (new_key() if place.gateway else _key(launch.command)),
        choose=lambda claimed: cards_for(launch, place, claimed),
    )
    starting = Starting(lang(), launch.context, check=check)
    with (
        stop_on_signals() as stop,
        registry.claimed(dirs().state, wish) as record,
        watching(record, keep.listeners) as watch,
        _gateway(place, launch, record) as starting.gateway,
        starting,
    ):
        if launch.plan is not None:
            note_plan(record.name, _shown(launch, "en"))
        doctor = Doctor(launch, keep, record.devices)
        callbacks = Callbacks(
            observer=every(starting.seen, watch),
            when_ready=starting.ready,
            diagnose=doctor,
            settle=Cards(record.devices, launch).settle,
        )
        outcome = supervise(spec_of(launch, record, keep, place.gateway), stop, callbacks)
    if outcome.failed:
        show_diagnosis(doctor.last)
        raise failure(outcome)
    with suppress(OSError):  # the terminal was closed, which is why it stopped
        print(msg("{name} stopped; no process of it is left", name=record.name).text(lang()), file=sys.stderr)
    return 0


def _shown(launch: Launch, language: str) -> str:
    """The plan, without a key that was given among its flags."""
    assert launch.plan is not None
    key = launch.command.get("api-key")
    return hide_secrets(plan_format.text(launch.plan, language), (key,) if key else ())


def _address(command: LaunchCommand, place: Place) -> tuple[str, int | None]:
    """The command's own --host and --port hold, unless `up` was told others."""
    host, port = (None if place.gateway else command.get("host")), place.port
    if port is None and (text := command.get("port")) is not None:
        port = _port(os.path.expandvars(text))
    return (os.path.expandvars(host) if host and place.host == LOOPBACK else place.host), port


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 65535):
        raise UsageError(
            msg("the launch command's --port is {text}; a port is a number from 1 to 65535", text=repr(text)),
            hint=msg("Correct it, or name another: --port 8000 before --."),
        )
    return int(text)


def _key(command: LaunchCommand) -> str:
    """The command's key, else the environment's, else a new one."""
    return _given_key(command) or new_key()


def _given_key(command: LaunchCommand) -> str | None:
    key = command.get("api-key") or os.environ.get("VLLM_API_KEY")
    if key and not (key.isascii() and key.isprintable() and key == key.strip()):
        raise UsageError(
            msg("the API key holds a line break or another character that no HTTP header brings over"),
            hint=msg("Use letters, digits and dashes; VLLM_API_KEY=$(cat FILE) leaves out the last line break."),
        )
    return key


def new_key() -> str:
    return f"sk-{secrets.token_urlsafe(24)}"


def _gateway(place: Place, launch: Launch, record: ServerRecord) -> AbstractContextManager[Gateway | None]:
    """The gateway that was asked for. A key that the command gives is the clients': the engine gets one of its own."""
    if place.gateway is None:
        return nullcontext()
    from trimtab.cli.up_gateway import clients_key, gateway_beside

    home = registry.directory(dirs().state, record.name)
    key = clients_key(dirs().state, home, _given_key(launch.command), again=bool(place.api_key))
    return gateway_beside(*place.gateway, key, home)


def cards_for(launch: Launch, place: Place, claimed: Mapping[str, str]) -> tuple[str, ...]:
    """The cards that a launch takes: those named, else the emptiest that no server has."""
    if not launch.cards:
        return ()
    from trimtab.facts.probe.gpus import read_gpus

    cards = [Card(str(card.index), card.free_bytes / 2**30) for card in read_gpus().cards]
    return choose_devices(cards, launch.cards, claimed, wanted=place.devices, share=place.share)


def spec_of(launch: Launch, record: ServerRecord, keep: Keep, door: tuple[str, int] | None = None) -> LaunchSpec:
    """All that starts the launch under its record."""
    drain = draining.engine_drain(launch.command, launch.engine.version, {**os.environ, **launch.env}, keep.drain_s)
    argv = (*launch.argv, "--host", record.host, "--port", str(record.port), *drain.words)
    env = {k: v for k, v in os.environ.items() if k not in (*NOT_INHERITED, *notify.VARIABLES)}
    env |= {**launch.env, "VLLM_API_KEY": record.api_key}
    if record.devices:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(record.devices)
    return LaunchSpec(
        name=record.name,
        argv=argv,
        env=env,
        host=record.host,
        port=record.port,
        served_model=launch.served_model,
        state_dir=dirs().state,
        cwd=launch.directory,
        api_key=record.api_key,
        devices=record.devices,
        engine_version=launch.engine.version,
        memo=msgspec.to_builtins(memo_of(launch, record, argv, keep, (draining.FLAG,) if drain.words else (), door)),
        log_bytes=keep.log_mib * 2**20,
        limits=keep.limits(drain.seconds),
        pace=keep.pace(),
    )
