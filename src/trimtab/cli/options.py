"""Every option that a verb takes, declared once: spelling, environment variable and help. Verbs import from here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
Gpu = Annotated[
    str | None, typer.Option("--gpu", envvar="TRIMTAB_GPU", help="Cards, e.g. 8xA10, H200, 2xH100-80, 24GiB, auto.")
]
HostMemory = Annotated[
    float | None,
    typer.Option("--host-memory", min=0.1, help="GiB of the host's memory, which swap and offloading take."),
]
VllmVersion = Annotated[str | None, typer.Option("--vllm", envvar="TRIMTAB_VLLM", help="vLLM version, e.g. 0.26.")]
InputTokens = Annotated[int | None, typer.Option("--input", help="Tokens of a typical prompt.")]
OutputTokens = Annotated[int | None, typer.Option("--output", help="Tokens of a typical answer.")]
Preference = Annotated[str, typer.Option("--prefer", help="latency, throughput or balanced.")]
SetFlags = Annotated[
    list[str] | None, typer.Option("--set", help="A vLLM flag to keep as it is, e.g. max-num-seqs=8; may be repeated.")
]
ModelConfig = Annotated[
    Path | None, typer.Option("--model-config", help="config.json, or a directory holding it, for the model.")
]
Context = Annotated[int | None, typer.Option("--context", help="Tokens of context one request needs.")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Requests to serve at once.")]
PlanForm = Annotated[
    str | None,
    typer.Option(
        "-o", "--form", help="sh, docker, compose, systemd, k8s, helm-values, ray, mp, config, client, json, plan."
    ),
]
Nodes = Annotated[
    int | None, typer.Option("--nodes", help="Machines that the cards are in; default: as few as hold them, 8 in each.")
]
Key = Annotated[str | None, typer.Option("--key", envvar="TRIMTAB_API_KEY", help="Key that the server asks for.")]
ServedModel = Annotated[str | None, typer.Option("--model", help="Model id as served; default: the first one listed.")]
ServerLog = Annotated[Path | None, typer.Option("--log", help="The server's log file.")]
FirstTokenTimeout = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait for a first token.")]
AllowUnjudged = Annotated[
    bool, typer.Option("--allow-unjudged", help="Exit with 0 although a criterion could not be judged.")
]
EngineRelease = Annotated[
    str | None,
    typer.Option("--version", help="vLLM version to install, e.g. 0.32.0; default: the newest that Trimtab knows."),
]
Explain = Annotated[bool, typer.Option("--explain", help="Show how every number was derived.")]
ServerName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A server, as `trimtab ps` names it.")]
EveryServer = Annotated[bool, typer.Option("--all", help="All servers of this host.")]
EndedToo = Annotated[bool, typer.Option("--all", "-a", help="Ended servers too.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the server ends or Ctrl-C.")]
LastLines = Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines to print first.")]
LastStarts = Annotated[int, typer.Option("--last", "-n", min=1, help="How many of the last starts to show.")]
TopSubject = Annotated[
    str | None, typer.Argument(metavar="[NAME|URL]", help="A server, as `trimtab ps` names it, or its address.")
]
Once = Annotated[bool, typer.Option("--once", help="Print one frame and stop.")]
Every = Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two looks.")]
ReportFile = Annotated[Path | None, typer.Option("--output", "-o", help="Write the report here, once it was shown.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without showing and asking.")]
ReportLines = Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the log's last lines to take.")]
StopBound = Annotated[
    float | None,
    typer.Option("--timeout", min=0, help="Seconds until it is told to end at once; default: what its --drain needs."),
]
ModelRef = Annotated[str, typer.Argument(metavar="MODEL", help="Model directory or hub id.")]
Subject = Annotated[
    str | None, typer.Argument(metavar="[SUBJECT]", help="Model directory or id, or a file with a command or a plan.")
]
Demo = Annotated[bool, typer.Option("--demo", help="A small real model on vLLM's CPU build; installs what is missing.")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the server; default: from the model.")]
Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Port; default: the first free from 8000.")]
Devices = Annotated[str | None, typer.Option("--devices", help="Cards to use, e.g. 0,1; default: the emptiest.")]
Share = Annotated[bool, typer.Option("--share", help="Allow cards that another Trimtab server uses.")]
EngineName = Annotated[str | None, typer.Option("--engine", help="Name of an installed engine (trimtab engine list).")]
EnginePython = Annotated[
    Path | None, typer.Option("--engine-python", help="Python of an existing vLLM, used as it is.")
]
VerifyWhenReady = Annotated[bool, typer.Option("--verify/--no-verify", help="Verify the server once it is ready.")]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Return once it is ready; end it with trimtab down.")]
Unit = Annotated[
    bool, typer.Option("--unit", help="Print a systemd unit that keeps a server of before alive; start nothing.")
]
Restart = Annotated[bool, typer.Option("--restart/--no-restart", help="Start the engine again when it crashed.")]
MaxRestarts = Annotated[
    int, typer.Option("--max-restarts", min=0, help="Restarts within an hour before the server is given up.")
]
DrainBound = Annotated[
    float, typer.Option("--drain", min=0, help="Seconds that running requests may take when it is asked to end.")
]
HangBound = Annotated[
    float,
    typer.Option("--hang-timeout", min=1, help="Seconds without any progress after which an engine counts as hung."),
]
OnEvent = Annotated[
    list[str] | None,
    typer.Option("--on-event", metavar="CMD", help="Run at each event, with it as JSON on stdin; may be repeated."),
]
Webhook = Annotated[
    list[str] | None,
    typer.Option("--webhook", metavar="URL", help="POST each event as JSON to this address; may be repeated."),
]
LogSize = Annotated[int, typer.Option("--log-size", min=1, help="MiB of log after which a new file is begun (of 5).")]
SelfHeal = Annotated[
    str,
    typer.Option(
        "--self-heal",
        help="After a failure for want of memory change one flag and start again: on, suggest (only say it), off.",
    ),
]
KeepBounds = Annotated[
    list[str] | None,
    typer.Option("--keep", help="A bound for --self-heal, e.g. 'max-model-len>=32768'; may be repeated."),
]
PinnedFlags = Annotated[
    list[str] | None, typer.Option("--pin", help="A vLLM flag that --self-heal leaves alone; may be repeated.")
]
MaxSteps = Annotated[int, typer.Option("--max-steps", min=1, help="Flags that --self-heal may change in turn.")]
BasePython = Annotated[
    Path | None,
    typer.Option("--python", help="Python that makes the engine's environment; default: the one that runs Trimtab."),
]
LintSubjects = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE|DIR|-|COMMAND]...", help="What to lint; or -- vllm serve ...")
]
FindingsFormat = Annotated[str, typer.Option("--format", help="text, json, sarif, github or markdown.")]
Select = Annotated[str, typer.Option("--select", help="Codes, prefixes or names of rules to run, with commas.")]
Ignore = Annotated[str, typer.Option("--ignore", help="Codes, prefixes or names of rules to leave out.")]
FailOn = Annotated[str, typer.Option("--fail-on", help="Exit with 1 from this severity on: error, warning or info.")]
ApplyFixes = Annotated[bool, typer.Option("--fix", help="Apply safe fixes to the files.")]
UnsafeFixes = Annotated[bool, typer.Option("--unsafe", help="Also fixes that may change what the command means.")]
ShowDiff = Annotated[bool, typer.Option("--diff", help="Show what --fix would change; change nothing.")]
DoctorSubject = Annotated[
    str | None,
    typer.Argument(metavar="[LOG|URL|NAME|-]", help="A log file, an endpoint's URL, a server's name, or - for stdin."),
]
ExitStatus = Annotated[
    int | None, typer.Option("--exit-status", help="How the server's process ended, e.g. 137 or -9.")
]
Force = Annotated[bool, typer.Option("--force", help="Start although the check of this host found errors.")]
RecordedHost = Annotated[
    Path | None, typer.Option("--record", help="Judge a host recorded by --write-record instead of this one.")
]
WriteRecord = Annotated[Path | None, typer.Option("--write-record", help="Write what was seen of this host as JSON.")]
RequestBound = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds that one request may take.")]
GatewayFile = Annotated[
    Path | None,
    typer.Option(
        "--config", help="The gateway's configuration; default: gateway.yaml beside config.toml, if it is there."
    ),
]
Listen = Annotated[str | None, typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on.")]
Workers = Annotated[int, typer.Option("--workers", min=1, max=256, help="Processes that share the port.")]
StoreUrl = Annotated[
    str | None, typer.Option("--store", envvar="TRIMTAB_STORE", help="SQLAlchemy URL of the store of keys and usage.")
]
BackEndUrls = Annotated[
    list[str] | None, typer.Option("--back-end", metavar="URL", help="Base URL of a vLLM server; may be repeated.")
]
ServerUrl = Annotated[str, typer.Argument(metavar="URL", help="Base URL of the server, with or without /v1.")]
Rate = Annotated[
    float | None, typer.Option("--rate", min=0.001, help="Requests a second, whatever is still running (open loop).")
]
Arrivals = Annotated[str, typer.Option("--arrivals", help="With --rate: poisson or constant.")]
Replay = Annotated[
    Path | None, typer.Option("--replay", help="A trace of requests, JSON Lines with times, lengths or prompts.")
]
Requests = Annotated[int | None, typer.Option("--requests", min=1, help="Requests to send; default: 100.")]
LoadSeconds = Annotated[float | None, typer.Option("--duration", min=0.1, help="Seconds after which none is begun.")]
InputLengths = Annotated[str, typer.Option("--input", help="Tokens of a prompt: 512, 128:1024, lognormal:512:0.6.")]
OutputLengths = Annotated[str, typer.Option("--output", help="Tokens of an answer, written like --input.")]
PrefixTokens = Annotated[int, typer.Option("--prefix", min=0, help="Tokens at the start that prompts have in common.")]
Prefixes = Annotated[int, typer.Option("--prefixes", min=1, help="How many different such starts there are.")]
Turns = Annotated[int, typer.Option("--turns", min=1, help="Turns of a conversation, each with those before it.")]
Images = Annotated[int, typer.Option("--images", min=0, help="Pictures in each prompt.")]
Goodput = Annotated[
    list[str] | None,
    typer.Option("--goodput", help="A target in ms that good requests keep, e.g. ttft=500; may be repeated."),
]
Warmup = Annotated[int, typer.Option("--warmup", min=0, help="Requests before the clock starts.")]
Seed = Annotated[int, typer.Option("--seed", help="What lengths, arrivals and orders are drawn from.")]
RowsFile = Annotated[Path | None, typer.Option("--rows", help="Write every request and figure here, as JSON Lines.")]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", help="Write a report with pictures here; needs the extra trimtab[report].")
]
PromptFile = Annotated[
    Path | None, typer.Argument(metavar="[PROMPTS.jsonl]", help="Prompts with their checks; default: Trimtab's own.")
]
SideA = Annotated[
    str, typer.Option("--a", metavar="URL[,MODEL]", help="The first back end, or FILE.json of an earlier --json.")
]
SideB = Annotated[
    str | None,
    typer.Option("--b", metavar="URL[,MODEL]", help="The second, written alike; without it --a is asked alone."),
]
KeyA = Annotated[str | None, typer.Option("--key-a", help="Key of --a; default: --key.")]
KeyB = Annotated[str | None, typer.Option("--key-b", help="Key of --b; default: --key.")]
Judge = Annotated[
    str | None, typer.Option("--judge", metavar="URL[,MODEL]", help="A model that says which answer is better.")
]
JudgeKey = Annotated[str | None, typer.Option("--judge-key", help="Key of --judge; default: --key.")]
PriceA = Annotated[
    str | None, typer.Option("--price-a", metavar="IN,OUT", help="Money for a million tokens of prompts, of answers.")
]
PriceB = Annotated[str | None, typer.Option("--price-b", metavar="IN,OUT", help="The same of --b.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, max=1000, help="How often each prompt is asked.")]
AnswerTokens = Annotated[
    int, typer.Option("--max-tokens", min=1, help="Tokens of an answer at most, where the prompt says nothing.")
]
TuneMinutes = Annotated[float, typer.Option("--budget", min=0.01, help="Minutes that this run may take.")]
TuneObjective = Annotated[str, typer.Option("--objective", help="throughput, latency or goodput.")]
TuneTarget = Annotated[
    str | None, typer.Option("--target", help="With goodput: what a good request keeps, ms, e.g. ttft=500,itl=50.")
]
TuneTry = Annotated[
    list[str] | None,
    typer.Option("--try", help="Only these flags and values, e.g. max-num-seqs=4,8,16; may be repeated."),
]
TunePins = Annotated[
    list[str] | None, typer.Option("--pin", help="A vLLM flag that stays as the plan has it; may be repeated.")
]
TuneLossy = Annotated[bool, typer.Option("--lossy", help="Also try an fp8 KV cache, which costs accuracy.")]
TuneRounds = Annotated[
    int, typer.Option("--rounds", min=2, help="Rounds of load per start; twice as many where a gain is unclear.")
]
TuneSeconds = Annotated[float, typer.Option("--round", min=0.5, help="Seconds of load in each round.")]
TuneJournal = Annotated[
    Path | None,
    typer.Option("--journal", help="Where the trials are written, and gone on from; default: by the arguments."),
]
TunedFile = Annotated[
    Path | None, typer.Option("--plan", "-o", help="The tuned plan; default: NAME.tuned.json in this directory.")
]
KeyLabel = Annotated[str | None, typer.Option("--label", help="What the key is called.")]
KeyOwner = Annotated[str | None, typer.Option("--owner", help="Whose key it is.")]
KeyTags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="NAME=VALUE", help="A label of your own; may be repeated.")
]
KeyPlan = Annotated[
    str | None, typer.Option("--plan", help="The plan whose limits hold where the key states none; none: no plan.")
]
KeyLimits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        help="models, endpoints (with commas), requests_per_minute, tokens_per_minute, concurrency, long_prompts,"
        " context, tokens_per_day, tokens_per_month, money_per_day, money_per_month; 60, 10k, 2M, none; repeatable.",
    ),
]
KeyExpires = Annotated[
    str | None, typer.Option("--expires", help="When it ends: 30d, 12h, a day such as 2027-01-31 (UTC), or never.")
]
AdminKey = Annotated[bool, typer.Option("--admin", help="A key for the admin API, which opens no model.")]
EndedKeys = Annotated[bool, typer.Option("--all", "-a", help="Revoked and expired ones too.")]
KeyName = Annotated[str, typer.Argument(metavar="KEY", help="A key's id, its label or its first characters.")]
KeyOf = Annotated[str | None, typer.Option("--key", help="Only this key: its id, its label or its first characters.")]
Grace = Annotated[str, typer.Option("--grace", help="How long the former text still holds: 24h, 10m, 0s.")]
UsageBy = Annotated[
    str, typer.Option("--by", help="key, owner, plan, model, back_end, path, status, day; several with commas.")
]
Since = Annotated[str, typer.Option("--since", help="From when on: 7d, 12h, or a day such as 2026-11-30 (UTC).")]
Until = Annotated[str | None, typer.Option("--until", help="Up to when: as --since; default: now.")]
PlanName = Annotated[str, typer.Argument(metavar="PLAN", help="A plan's name.")]
ProviderName = Annotated[str, typer.Argument(metavar="NAME", help="As `key: {stored: NAME}` of a back end names it.")]
FromVariable = Annotated[str | None, typer.Option("--from-env", help="The variable that holds the key.")]
FromFile = Annotated[Path | None, typer.Option("--from-file", help="The file that holds the key alone.")]
WithGateway = Annotated[
    bool | None,
    typer.Option("--gateway/--no-gateway", help="Start a gateway with it; the engine then listens on 127.0.0.1 alone."),
]
GatewayPort = Annotated[
    int | None,
    typer.Option("--gateway-port", min=1, max=65535, help="Port of --gateway, on --host; 8080, or that of before."),
]
Depth = Annotated[str, typer.Option("--depth", help="quick: the four criteria; full: all.")]
OnlyCriteria = Annotated[
    list[str] | None, typer.Option("--only", metavar="NAME", help="Criteria to judge, with commas; may be repeated.")
]
MinutesBudget = Annotated[
    float | None, typer.Option("--budget", min=0.01, help="Minutes it may take; what is left then is not measured.")
]
VerdictBounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bound",
        metavar="NAME=VALUE",
        help="A bound of a verdict: itl=500, ttft=2000 (ms), recall=0.8, cancel=5 (s), memory=256 (MiB), noise=0.1;"
        " may be repeated.",
    ),
]
NeedleShare = Annotated[
    float, typer.Option("--needle-share", min=0.01, max=1.0, help="Share of the context that long texts fill.")
]
MemoryMinutes = Annotated[
    float, typer.Option("--memory-minutes", min=0.01, help="Minutes of steady load in which memory must stay level.")
]
SaveBaseline = Annotated[Path | None, typer.Option("--save", help="Write the report here, to compare with later.")]
Baselines = Annotated[
    list[Path] | None,
    typer.Option("--against", help="A saved report to compare with; several make the spread wider. May be repeated."),
]
ClientName = Annotated[
    str | None, typer.Argument(metavar="[CLIENT]", help="A client program; without one, all that Trimtab knows.")
]
ConnectUrl = Annotated[
    str | None, typer.Option("--url", help="The server, with or without /v1; default: the one that runs on this host.")
]
KeyVariable = Annotated[
    str, typer.Option("--key-env", metavar="NAME", help="The variable in which the client finds the key.")
]
SmallModel = Annotated[
    str | None,
    typer.Option("--small-model", help="Model id for small tasks, where a client has one; default: --model."),
]
ConnectWrite = Annotated[bool, typer.Option("--write", help="Write the client's configuration; --undo takes it back.")]
ConnectPrint = Annotated[bool, typer.Option("--print", help="Print what to paste, and nothing else.")]
ConnectUndo = Annotated[bool, typer.Option("--undo", help="Put the client's files back as they were.")]
ConnectCheck = Annotated[bool, typer.Option("--check", help="Say what is wrong in the client's configuration.")]
WriteKey = Annotated[
    bool, typer.Option("--write-key", help="Write the key itself into the client's file, not its variable's name.")
]
