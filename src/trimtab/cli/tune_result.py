"""What a tuning leaves: the tuned plan as a file, and whether its target was met."""

from __future__ import annotations

from pathlib import Path

from trimtab.bench.tuning.objective import MET
from trimtab.bench.tuning.reasons import choices
from trimtab.cli.format.tune import Report
from trimtab.cli.launch import Launch
from trimtab.cli.plan_check import checked
from trimtab.cli.plan_forms import written
from trimtab.cli.tune_launches import Launches, tuned_plan
from trimtab.errors import HostError
from trimtab.messages import msg


def write_plan(report: Report, launch: Launch, launches: Launches, file: Path | None) -> Path:
    """Write the best launch as a plan, which `trimtab up FILE` starts; HostError where the disk does not take it."""
    assert launch.plan is not None
    found, space = report.tuned.search, report.space
    why = choices(found, space, report.tuned.trials, report.objective)
    told = [(f"--{flag}", "" if value == "true" else value or "", reason) for flag, value, reason in why
            if value not in (None, "false")]  # fmt: skip
    made = tuned_plan(launch.plan, launches.at(found.best), told)
    file = file or Path(f"{Path(launch.served_model).name}.tuned.json")
    text = written("json", made, checked(made, launches.gpus), None)
    beside = file.with_name(f".{file.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise HostError(
            msg("cannot write {path}: {reason}", path=file, reason=error.strerror or error),
            hint=msg("The trials are kept: the same command with another --plan writes it without a start."),
        ) from error
    return file


def met(report: Report) -> bool:
    """Whether the best launch keeps the target for MET of its requests; True without a target."""
    share = report.good_share
    return share is None or share >= MET
