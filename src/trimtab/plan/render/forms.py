"""The forms of a launch by name; adding one is a module with `render(launch) -> str` and a line here."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.render.launch import Launch

FORMS: dict[str, str] = {
    "sh": "trimtab.plan.render.sh",
    "docker": "trimtab.plan.render.docker",
    "compose": "trimtab.plan.render.compose",
    "systemd": "trimtab.plan.render.systemd",
    "k8s": "trimtab.plan.render.k8s",
    "helm-values": "trimtab.plan.render.helm_values",
    "ray": "trimtab.plan.render.ray",
    "mp": "trimtab.plan.render.mp",
    "config": "trimtab.plan.render.config",
    "client": "trimtab.plan.render.client",
}
"""Form -> its module, loaded when it is asked for."""
ONE_MACHINE = ("sh", "docker", "compose", "systemd", "helm-values", "config")
"""Forms that start one process on one machine."""


def require_form(name: str, more: tuple[str, ...] = ()) -> str:
    """The name, when it is a form or one of `more`; else UsageError naming the nearest."""
    known = (*FORMS, *more)
    if name in known:
        return name
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1, 0.5)
    hint = msg("Did you mean {name}?", name=near[0]) if near else msg("Forms: {forms}.", forms=", ".join(known))
    raise UsageError(msg("-o takes {forms}; not {name}", forms=", ".join(known), name=repr(name)), hint=hint)


def render(form: str, launch: Launch) -> str:
    """The launch in this form. UsageError where the form cannot hold it: several machines, a card without an image."""
    if launch.nodes > 1 and form in ONE_MACHINE:
        raise UsageError(
            msg("-o {form} starts one machine; this launch runs on {nodes}", form=form, nodes=launch.nodes),
            hint=msg("Use -o mp, -o ray or -o k8s, which start all of them."),
        )
    made: Callable[[Launch], str] = import_module(FORMS[require_form(form)]).render
    return made(launch)
