"""`trimtab keys`: the gateway's keys and plans, usage, and keys of providers; whether a gateway runs or not."""

from __future__ import annotations

import sys
import time
from typing import Any

import typer

from trimtab.cli import keys_plans, keys_provider, options
from trimtab.cli.amounts import NONE, duration, limits_of, moment, tags_of
from trimtab.cli.format import keys as shown
from trimtab.cli.keys_store import opened
from trimtab.cli.settings import lang
from trimtab.errors import UsageError
from trimtab.gateway.limits import Limits
from trimtab.gateway.store import keys as stored
from trimtab.gateway.store.keys import KeyRecord, Made, Wish
from trimtab.gateway.store.plans import all_plans
from trimtab.gateway.store.reports import BY, used
from trimtab.messages import msg

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The gateway's keys, plans and usage.")
app.add_typer(keys_plans.app, name="plans")
app.add_typer(keys_provider.app, name="provider")


@app.command()
def create(
    label: options.KeyLabel = None,
    owner: options.KeyOwner = None,
    tags: options.KeyTags = None,
    plan: options.KeyPlan = None,
    limits: options.KeyLimits = None,
    expires: options.KeyExpires = None,
    admin: options.AdminKey = False,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Make a key and print it: it is shown this once."""
    wish = Wish(
        label or "", owner or "", tags_of(tags or (), {}), _plan(plan), limits_of(limits or (), Limits()), admin,
        _end(expires),
    )  # fmt: skip
    with opened(store, config) as to:
        return _made(stored.create_key(to, wish), as_json)


@app.command("list")
def list_keys(
    ended: options.EndedKeys = False,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """The keys, without their texts."""
    with opened(store, config) as source:
        keys = [key for key in stored.all_keys(source) if ended or key.holds(time.time())]
    print(shown.keys_json(keys) if as_json else shown.keys_text(keys, time.time(), lang()))
    return 0


@app.command()
def show(
    key: options.KeyName,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """One key with the limits that hold for it."""
    with opened(store, config) as source:
        return _shown(stored.one_key(source, key), {plan.name: plan.limits for plan in all_plans(source)}, as_json)


@app.command()
def change(
    key: options.KeyName,
    label: options.KeyLabel = None,
    owner: options.KeyOwner = None,
    tags: options.KeyTags = None,
    plan: options.KeyPlan = None,
    limits: options.KeyLimits = None,
    expires: options.KeyExpires = None,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Change what is named of a key; running gateways follow within a second."""
    with opened(store, config) as to:
        known = stored.one_key(to, key)
        changes: dict[str, Any] = {}
        if label is not None:
            changes["label"] = label
        if owner is not None:
            changes["owner"] = owner
        if tags:
            changes["tags"] = tags_of(tags, known.tags)
        if plan is not None:
            changes["plan"] = _plan(plan)
        if limits:
            changes["limits"] = limits_of(limits, known.limits)
        if expires is not None:
            changes["expires"] = _end(expires)
        if not changes:
            raise UsageError(msg("nothing is named that is to change"), hint=msg("See trimtab keys change --help."))
        changed = stored.change_key(to, known.id, changes)
        return _shown(changed, {plan.name: plan.limits for plan in all_plans(to)}, as_json)


@app.command()
def rotate(
    key: options.KeyName,
    grace: options.Grace = "24h",
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Give a key another text and print it; the former one holds a while longer."""
    with opened(store, config) as to:
        return _made(stored.rotate_key(to, key, duration(grace)), as_json)


@app.command()
def revoke(
    key: options.KeyName,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """End a key for good; running gateways refuse it within a second."""
    with opened(store, config) as to:
        gone = stored.revoke_key(to, key)
    print(shown.key_json(gone, {}) if as_json else shown.revoked(gone).text(lang()))
    return 0


@app.command()
def usage(
    by: options.UsageBy = "key,model",
    since: options.Since = "30d",
    until: options.Until = None,
    key: options.KeyOf = None,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Requests, tokens, money and latency, added up."""
    groups = [word.strip() for word in by.split(",") if word.strip()]
    for word in groups:
        if word not in BY:
            raise UsageError(
                msg("usage is not added up by {word}", word=repr(word)),
                hint=msg("Take of: {names}.", names=", ".join(BY)),
            )
    now = time.time()
    start, end = moment(since, now, -1), moment(until, now, -1) if until is not None else now
    if start > end:
        raise UsageError(
            msg("--since {since} lies behind --until {until}", since=since, until=until or "now"),
            hint=msg("Name the earlier time with --since: --since 2d --until 1d."),
        )
    with opened(store, config) as source:
        only = stored.one_key(source, key).id if key is not None else None
        found = used(source, groups, start, end, only)
    print(shown.usage_json(found, groups, start, end) if as_json else shown.usage_text(found, groups, lang()))
    return 0


def _made(made: Made, as_json: bool) -> int:
    if as_json:
        print(shown.made_json(made))
        return 0
    print(made.text.reveal())
    print(shown.made_note(made).text(lang()), file=sys.stderr)
    return 0


def _shown(key: KeyRecord, plans: dict[str, Limits], as_json: bool) -> int:
    print(shown.key_json(key, plans) if as_json else shown.key_text(key, plans, time.time(), lang()))
    return 0


def _plan(name: str | None) -> str | None:
    return None if name is None or name.lower() in NONE else name


def _end(text: str | None) -> float | None:
    return None if text is None or text.lower() in ("", "never") else moment(text, time.time(), 1)
