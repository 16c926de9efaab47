"""What a form is made of: the planned command taken apart, and the facts of its plan that a deployment needs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from trimtab.engine.command import FlagUse, LaunchCommand
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.memory.card import Vendor
from trimtab.plan.memory.versions import Release
from trimtab.plan.planner import Plan

CARDS_PER_MACHINE = 8
"""What a launch is split by when nobody says over how many machines: HGX and DGX hold eight."""
GIB_PER_SECOND = 0.1
"""The slowest source of weights to wait for: about 1 Gbit/s, a download or a network disk."""
STARTED_S = 600
"""Seconds for all that is not reading weights: imports, torch.compile, graphs. The production-stack's startup probe
gives as much (helm/values.yaml: 60 tries of 10 s)."""
DEFAULT_PORT = 8000


class Launch(msgspec.Struct, frozen=True):
    """One launch. `cards` over all machines, `machines` their number; `program` is how vLLM is started there."""

    command: LaunchCommand
    env: Mapping[str, str]
    version: Release
    vendor: Vendor
    card: str
    cards: int
    nodes: int
    weights_gib: float
    host_gib: float
    prefix_caching: bool = True
    program: str | None = None

    @property
    def model(self) -> str:
        return self.command.model.text if self.command.model else ""

    @property
    def served_name(self) -> str:
        return self.command.get("served-model-name") or self.model

    @property
    def name(self) -> str:
        """The served name as a host name may be (RFC 1123): what containers, services and units are called."""
        words = re.sub(r"[^a-z0-9]+", "-", self.served_name.rpartition("/")[2].lower()).strip("-")
        return f"vllm-{words}"[:40].rstrip("-") if words else "vllm-server"

    @property
    def port(self) -> int:
        given = self.command.get("port") or ""
        return int(given) if given.isdigit() else DEFAULT_PORT

    @property
    def is_path(self) -> bool:
        """Whether the model is a directory, by how it is written."""
        return self.model.startswith(("/", "./", "../", "~"))

    @property
    def flags(self) -> tuple[FlagUse, ...]:
        """The flags in the order of the command, without the model."""
        return tuple(f for f in self.command.flags if f.name != "model" or f.path)

    @property
    def arguments(self) -> list[str]:
        """What follows `vllm serve`: the model first."""
        return self.command.argv()[2:]

    @property
    def cards_per_node(self) -> int:
        return self.cards // self.nodes

    @property
    def startup_s(self) -> int:
        """Seconds that a first start may take before it counts as failed."""
        return STARTED_S + math.ceil(self.weights_gib / GIB_PER_SECOND / 60) * 60

    @property
    def about(self) -> str:
        """One line for people."""
        cards = "the CPU" if self.vendor == "cpu" else f"{self.cards} x {self.card}"
        where = f" on {self.nodes} machines" if self.nodes > 1 else ""
        return f"{self.served_name} on {cards}{where} with vLLM {self.version}, planned by Trimtab."

    def require_absolute(self) -> None:
        """UsageError when the model is a directory that only this working directory gives a meaning."""
        if self.is_path and not self.model.startswith("/"):
            raise UsageError(
                msg("the model is {path}: what starts elsewhere needs an absolute path", path=self.model),
                hint=msg("Name the model by its whole path, or by its id on the hub."),
            )


def launch_of(plan: Plan, nodes: int | None = None, program: str | None = None) -> Launch:
    """The launch of a plan on `nodes` machines (None: as few as hold its cards, eight on each).

    UsageError when the cards do not spread evenly over them.
    """
    budget = plan.budget
    cards = budget.settings.cards_needed
    machines = nodes if nodes is not None else math.ceil(cards / CARDS_PER_MACHINE)
    if machines < 1 or cards % machines:
        raise UsageError(
            msg("{cards} cards do not spread evenly over {nodes} machines", cards=cards, nodes=machines),
            hint=msg("Name another number: --nodes 2."),
        )
    card = budget.tightest.card
    return Launch(
        command=plan.command,
        env=plan.env,
        version=budget.settings.version,
        vendor=card.vendor,
        card=card.name,
        cards=cards,
        nodes=machines,
        weights_gib=budget.model.stored_bytes / 2**30,
        host_gib=budget.host_memory.value,
        prefix_caching=budget.settings.enable_prefix_caching,
        program=program,
    )
