"""Plans in the store: named limits that many keys share."""

from __future__ import annotations

import re
import time

import msgspec
import sqlalchemy as sa

from trimtab.errors import UsageError
from trimtab.gateway.limits import ENDPOINTS, Limits, faults
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Store
from trimtab.messages import msg

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_limits = msgspec.json.Decoder(Limits)


class Plan(msgspec.Struct, frozen=True):
    """A plan, and how many keys that are not revoked have it."""

    name: str
    limits: Limits
    created: float
    keys: int


def all_plans(store: Store) -> list[Plan]:
    """The plans by name."""
    with store.reading() as connection:
        plans, keys = tables.plans, tables.keys
        held = sa.select(sa.func.count()).where(keys.c.plan == plans.c.name, keys.c.revoked.is_(None)).scalar_subquery()
        rows = connection.execute(sa.select(plans.c.name, plans.c.limits, plans.c.created, held).order_by(plans.c.name))
        return [Plan(name, _limits.decode(limits), created, count) for name, limits, created, count in rows]


def one_plan(store: Store, name: str) -> Plan:
    """The plan of a name; UsageError when there is none."""
    plans = all_plans(store)
    for plan in plans:
        if plan.name == name:
            return plan
    raise UsageError(
        msg("there is no plan {name}", name=name),
        hint=msg("The plans are: {plans}.", plans=", ".join(plan.name for plan in plans) or "-"),
    )


def put_plan(store: Store, name: str, limits: Limits) -> Plan:
    """Make a plan or change it; the keys that have it follow within a second. UsageError for what makes no sense."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            msg("{name} cannot be the name of a plan", name=repr(name)),
            hint=msg("Take up to 64 letters, digits, dots, dashes and underscores."),
        )
    require_sense(limits)
    with store.writing() as to:
        text = msgspec.json.encode(limits).decode()
        changed = to.connection.execute(
            sa.update(tables.plans).where(tables.plans.c.name == name).values(limits=text, version=to.version)
        )
        if not changed.rowcount:
            row = {"name": name, "limits": text, "created": time.time(), "version": to.version}
            to.connection.execute(sa.insert(tables.plans), row)
        to.connection.execute(sa.update(tables.keys).where(tables.keys.c.plan == name).values(version=to.version))
    return one_plan(store, name)


def remove_plan(store: Store, name: str) -> None:
    """Remove a plan that no key has; UsageError where one has it."""
    plan = one_plan(store, name)
    with store.writing() as to:
        held = to.connection.execute(sa.select(tables.keys.c.id).where(tables.keys.c.plan == name)).scalars().all()
        if held:
            raise UsageError(
                msg("the plan {name} is the plan of {count} keys: {keys}", name=name, count=len(held),
                    keys=", ".join(held[:5])),
                hint=msg("Give them another plan first: trimtab keys change ID --plan NAME."),
            )  # fmt: skip
        to.connection.execute(sa.delete(tables.plans).where(tables.plans.c.name == plan.name))


def require_sense(limits: Limits) -> None:
    """UsageError naming the first limit that makes no sense."""
    for field, value in faults(limits):
        hint = msg("Give a whole number of 1 or more, below 2^62.")
        if field == "endpoints":
            hint = msg("Endpoints are: {names}.", names=", ".join(ENDPOINTS))
        elif field == "models":
            hint = msg("Give a model's name, or a pattern such as qwen*.")
        elif field.startswith("money"):
            hint = msg("Give an amount of 0 or more.")
        raise UsageError(msg("{field} cannot be {value}", field=field, value=repr(value)), hint=hint)
