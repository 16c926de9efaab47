"""How `up` keeps a server alive: the bounds from its options, and what the journal remembers of it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from trimtab.cli.launch import Launch
from trimtab.cli.settings import dirs
from trimtab.engine.command import LaunchCommand
from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.plan.pinned import flags_of
from trimtab.supervisor import registry
from trimtab.supervisor.environments import Engine, vllm_argv
from trimtab.supervisor.events import Listeners
from trimtab.supervisor.happenings import Limits
from trimtab.supervisor.journal import FILE, LAUNCH, STEP, read_journal
from trimtab.supervisor.watch import Pace

_STALLED = 1 / 3  # of the bound on a hang: until a token is asked for; the rest is for the token


HEAL = ("off", "suggest", "on")


class Keep(msgspec.Struct, frozen=True):
    """What the command line says about keeping the server alive."""

    restart: bool = True
    max_restarts: int = 5
    drain_s: float = 25.0
    hang_s: float = 180.0
    log_mib: int = 64
    listeners: Listeners = Listeners()
    heal: str = "off"
    bounds: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    max_steps: int = 3

    def limits(self, engine_drain_s: float = 0.0) -> Limits:
        return Limits(
            drain_s=self.drain_s,
            engine_drain_s=engine_drain_s,
            max_restarts=self.max_restarts if self.restart else 0,
            max_steps=self.max_steps if self.heal == "on" else 0,
        )

    def with_former(self, memo: Memo) -> Keep:
        """What was pinned or bounded when the server was started first holds for a later start by its name too."""
        bounds, pins = dict.fromkeys((*memo.bounds, *self.bounds)), dict.fromkeys((*memo.pins, *self.pins))
        return msgspec.structs.replace(self, bounds=tuple(bounds), pins=tuple(pins))

    def require_sound(self) -> None:
        """UsageError for a --self-heal that is none, or a bound that is none."""
        if self.heal not in HEAL:
            raise UsageError(
                msg("--self-heal takes {known}, not {word}", known=", ".join(HEAL), word=repr(self.heal)),
                hint=msg("Write --self-heal, --self-heal=suggest, or leave it out."),
            )
        for option, seconds in (("--hang-timeout", self.hang_s), ("--drain", self.drain_s)):
            if not isfinite(seconds):
                raise UsageError(msg("{option} takes seconds, not {value}", option=option, value=seconds))
        if self.bounds:
            from trimtab.cli.examination import bound_of, require_agreement

            bounds = tuple(bound_of(text) for text in self.bounds)
            for bound in bounds:
                _require_flag(bound.flag, "--keep")
            require_agreement(bounds)

    def pace(self) -> Pace:
        stall_s = self.hang_s * _STALLED
        return Pace(look_s=min(10.0, stall_s / 2), stall_s=stall_s, token_s=self.hang_s - stall_s)


def asked_bounds(bounds: list[str] | None, context: int | None, concurrency: int | None) -> tuple[str, ...]:
    """What was asked for is kept too: the context and the concurrency that the plan was made for."""
    asked = {"max-model-len": context, "max-num-seqs": concurrency}
    return (*(bounds or ()), *(f"{flag}>={value}" for flag, value in asked.items() if value is not None))


def pins_of(pins: list[str] | None, rest: list[str] | None) -> tuple[str, ...]:
    """Flags named by --pin, and those given after -- beside a SUBJECT; a whole command there pins nothing."""
    given = () if not rest or not rest[0].startswith("-") else tuple(use.dotted for use in flags_of(rest))
    for pin in pins or ():
        _require_flag(pin.strip().lstrip("-").replace("_", "-"), "--pin")
    return (*(pins or ()), *given)


def _require_flag(name: str, option: str) -> None:
    """A misspelt name would protect nothing."""
    from trimtab.engine import flags

    known = flags.known_names()
    if f"--{name.partition('.')[0]}" not in known:
        near = ", ".join(flags.nearest(f"--{name}", known))
        raise UsageError(
            msg("{option} names {flag}, which no vLLM known here has", option=option, flag=repr(name)),
            hint=msg("Did you mean {near}?", near=near) if near else msg("trimtab flags lists what it takes."),
        )


class Memo(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal keeps of a launch, so that `up NAME` starts the same again; the key is in the record."""

    argv: tuple[str, ...]  # of the process, host and port included
    program: int  # how many of these words run the engine's `vllm`
    env: dict[str, str]  # what was added to the environment
    served_model: str
    cards: int
    devices: tuple[str, ...]
    host: str
    port: int
    cwd: str
    engine_name: str
    engine_kind: str
    engine_version: str
    python: str
    bounds: tuple[str, ...] = ()  # of --self-heal: what a later start must not pass either
    pins: tuple[str, ...] = ()
    added: tuple[str, ...] = ()  # flags in `argv` that `up` added: a later start settles them anew
    gateway: tuple[str, int] | None = None  # where one listens before it


def memo_of(
    launch: Launch, record: ServerRecord, argv: tuple[str, ...], keep: Keep, added: tuple[str, ...],
    gateway: tuple[str, int] | None,
) -> Memo:  # fmt: skip
    engine = launch.engine
    return Memo(
        argv=argv, program=len(vllm_argv(engine)), env=dict(launch.env), served_model=launch.served_model,
        cards=launch.cards, devices=record.devices, host=record.host, port=record.port, cwd=str(launch.directory),
        engine_name=engine.name, engine_kind=engine.kind, engine_version=engine.version, python=str(engine.python),
        bounds=keep.bounds, pins=keep.pins, added=added, gateway=gateway,
    )  # fmt: skip


class Recovered(msgspec.Struct, frozen=True):
    """A server of before, ready to be started again under its name, address and key."""

    name: str
    launch: Launch
    memo: Memo
    api_key: str


def recall(name: str) -> Recovered | None:
    """The last launch of the server `name` as its journal has it, changed parameters included; None without one.

    UsageError when its engine's Python, its model or its journal is gone, HostError when another version of Trimtab
    wrote its record or its launch.
    """
    state = dirs().state
    if not registry.is_name(name):
        return None
    registry.require_readable(state, name)
    record = registry.read(state, name)
    home = registry.directory(state, name)
    memo = last_memo(name, home) if record is not None else None
    if record is None or (memo is None and not record.argv):  # claimed, and never launched
        return None
    if memo is None:
        raise UsageError(
            msg(
                "the journal of {name} tells no launch that could be started again: {file}", name=name, file=home / FILE
            ),
            hint=msg("It was removed or cut. Start the server anew: trimtab up MODEL --name {name}", name=name),
        )
    if not Path(memo.python).exists():
        raise UsageError(
            msg("{name} ran with {python}, which is gone", name=name, python=memo.python),
            hint=msg("Start it anew, with its model and another engine: trimtab up MODEL --name {name}", name=name),
        )
    engine = Engine(memo.engine_name, memo.engine_kind, memo.engine_version, Path(memo.python), {})  # type: ignore[arg-type]
    command = LaunchCommand.from_argv(["vllm", *memo.argv[memo.program :]])
    for flag in memo.added:
        command = command.without_flag(flag)
    directory = Path(memo.cwd) if Path(memo.cwd).is_dir() else Path.cwd()
    _require_model(name, command, directory)
    launch = Launch(
        engine=engine, command=command, served_model=memo.served_model, env=memo.env, cards=memo.cards,
        directory=directory,
    )  # fmt: skip
    return Recovered(name, launch, memo, record.api_key)


def _require_model(name: str, command: LaunchCommand, directory: Path) -> None:
    """vLLM would take a path that is gone for a model of the hub, and say so after a minute."""
    model = command.get("model") or (command.model.text if command.model is not None else "")
    if model.startswith(("/", "./", "../")) and not (directory / model).exists():
        raise UsageError(
            msg("{name} served {model}, which is gone", name=name, model=model),
            hint=msg("Put it back, or start another: trimtab up MODEL --name {name}", name=name),
        )


def last_memo(name: str, directory: Path) -> Memo | None:
    """The last launch with the steps after it; None where there was none."""
    launch: Mapping[str, Any] | None = None
    for entry in read_journal(directory):
        if entry.what == LAUNCH:
            launch = entry.data
        elif entry.what == STEP and launch is not None and entry.data.get("argv"):
            launch = {**launch, "argv": entry.data["argv"]}
    try:
        return msgspec.convert(launch, Memo) if launch is not None else None
    except msgspec.ValidationError as error:
        raise HostError(
            msg("the last launch of {name} cannot be read here: {reason}", name=name, reason=error),
            hint=msg("Another version of Trimtab wrote it. Start it anew: trimtab up MODEL --name {name}", name=name),
        ) from error
