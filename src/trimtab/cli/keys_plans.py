"""`trimtab keys plans`: named limits that many keys share."""

from __future__ import annotations

import sys

import typer

from trimtab.cli import options
from trimtab.cli.amounts import limits_of
from trimtab.cli.format import keys as shown
from trimtab.cli.keys_store import opened
from trimtab.cli.settings import lang
from trimtab.gateway.limits import Limits
from trimtab.gateway.store.plans import all_plans, one_plan, put_plan, remove_plan
from trimtab.messages import msg

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Plans: limits that many keys share.")


@app.command("list")
def list_plans(
    store: options.StoreUrl = None, config: options.GatewayFile = None, as_json: options.AsJson = False
) -> int:
    """The plans, their limits and how many keys have each."""
    with opened(store, config) as source:
        plans = all_plans(source)
    print(shown.plans_json(plans) if as_json else shown.plans_text(plans, lang()))
    return 0


@app.command("set")
def set_plan(
    plan: options.PlanName,
    limits: options.KeyLimits = None,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Make a plan, or change the limits that are named of one; its keys follow within a second."""
    with opened(store, config) as to:
        known = {each.name: each.limits for each in all_plans(to)}
        changed = put_plan(to, plan, limits_of(limits or (), known.get(plan, Limits())))
    print(shown.plans_json([changed]) if as_json else shown.plans_text([changed], lang()))
    return 0


@app.command()
def show(
    plan: options.PlanName,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """One plan."""
    with opened(store, config) as source:
        found = one_plan(source, plan)
    print(shown.plans_json([found]) if as_json else shown.plans_text([found], lang()))
    return 0


@app.command()
def remove(
    plan: options.PlanName,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Remove a plan that no key has; prints those that stay."""
    with opened(store, config) as to:
        remove_plan(to, plan)
        left = all_plans(to)
    print(msg("removed the plan {name}", name=plan).text(lang()), file=sys.stderr)
    print(shown.plans_json(left) if as_json else shown.plans_text(left, lang()))
    return 0
