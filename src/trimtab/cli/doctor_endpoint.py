"""`trimtab doctor URL`: ask an endpoint step by step, and say what stands between a client and it."""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit

import msgspec

from trimtab.bench.endpoint import is_url
from trimtab.bench.probe import LOOPBACK, Asked, probe
from trimtab.cli.format import endpoint as endpoint_format
from trimtab.cli.settings import lang
from trimtab.engine.evidence import Evidence, Trouble
from trimtab.errors import UsageError
from trimtab.facts.probe.host import read_host
from trimtab.messages import msg
from trimtab.rules import registry
from trimtab.rules.clients import judge_endpoint
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Selection
from trimtab.supervisor.ports import listeners

MOST_LISTENERS = 100


def run_endpoint(
    url: str, *, key: str | None, model: str | None, bound_s: float, selection: Selection, json: bool
) -> int:
    """Ask, judge, print. Exit code 1 where something stands in a client's way, 0 where one is served."""
    if not is_url(url.strip()):
        raise UsageError(
            msg("{url} is not a URL of a server", url=repr(url)), hint=msg("Write it as http://HOST:PORT/v1.")
        )
    seen = _seen(Asked(url, key, model, bound_s, os.environ))
    report = judge_endpoint(seen, selection.checked(registry.rules(Subject.CLIENT)))
    if json:
        print(endpoint_format.as_json(seen, report, lang()), end="")
    else:
        print(endpoint_format.as_text(seen, report, lang(), colour=sys.stdout.isatty()), end="")
    return int(report.worst() is Severity.ERROR)


def _seen(asked: Asked) -> Evidence:
    """What the probe saw, and, where nothing listens on this host, what else does."""
    seen = probe(asked)
    refused = any(answer.trouble is Trouble.REFUSED for answer in seen.answers)
    here = urlsplit(seen.url).hostname in LOOPBACK
    heard = tuple(listeners()[:MOST_LISTENERS]) if refused and here else ()
    return msgspec.structs.replace(seen, container=read_host().in_container, listening=heard)
