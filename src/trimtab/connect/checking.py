"""What is wrong in a client's configuration, beside what the server tells; under the doctor's codes where there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from trimtab.connect.client import Client, Files, KeyIs, Present, Trouble
from trimtab.connect.live import LOOPBACK, Served
from trimtab.connect.values import Surroundings
from trimtab.engine.api import split_base_url
from trimtab.messages import Message, msg
from trimtab.rules.registry import rules
from trimtab.rules.rule import Severity, Subject

CODES: dict[str, tuple[str, Message]] = {
    "CON001": ("not-configured", msg("The client has no configuration that names a server.")),
    "CON002": ("stale-protocol", msg("The configuration names a wire protocol that the client has dropped.")),
    "CON003": ("another-server", msg("The client is set to another server than this one.")),
    "CON004": ("context-differs", msg("The configuration has another context length than the server tells.")),
    "CON005": ("context-too-small", msg("The served context is too small for this client.")),
    "CON006": ("mcp-on-the-servers-port", msg("An MCP server is entered at the port where the model is served.")),
    "CON007": ("environment-overrules", msg("A variable of the environment overrules the configuration.")),
    "CON008": ("protocol-not-spoken", msg("The server has no route for the protocol that the client speaks.")),
    "CON009": ("provider-not-chosen", msg("The server is entered, and another provider is chosen.")),
}
"""What the doctor has no rule for, since it is seen in a file alone: code -> name, summary."""

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def name_of(code: str) -> str:
    """The name of the doctor's rule, or of ours."""
    if code in CODES:
        return CODES[code][0]
    return next(rule.name for rule in rules(Subject.CLIENT) if rule.code == code)


def present(client: Client, around: Surroundings) -> Present | None:
    """What the client is set to; None where nothing is, or where it has no file."""
    return client.read(Files(around)) if client.read is not None else None


def judge(client: Client, found: Present | None, served: Served | None, environ: Mapping[str, str]) -> list[Trouble]:
    """The troubles, worst first. Without a server, what the configuration tells by itself."""
    if found is None or (found.base_url is None and not found.troubles):
        missing = msg("{client} names no server", client=client.title)
        return [Trouble("CON001", Severity.ERROR, missing, found.place if found else "")]
    troubles = list(found.troubles)
    if not found.active:
        said = msg("the server is entered, and another provider is chosen")
        troubles.append(Trouble("CON009", Severity.ERROR, said, found.place))
    troubles += _address(client, found, served)
    troubles += _key(found, served, environ)
    troubles += _model(found, served)
    troubles += _size(client, found, served)
    troubles += proxied(found.base_url or "", environ)
    return sorted(troubles, key=lambda one: one.severity.rank)


def _address(client: Client, found: Present, served: Served | None) -> Iterator[Trouble]:
    url = (found.base_url or "").strip()
    if not url:
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Trouble("CLT017", Severity.ERROR, msg("the base URL {url} is no URL", url=repr(url)), found.place)
        return
    path, place = parts.path.rstrip("/"), found.place
    if "//" in parts.path:
        yield Trouble("CLT013", Severity.ERROR, msg("the base URL {url} holds a slash twice", url=url), place)
    ends = path.endswith("/v1")
    if path.endswith(("/v1/v1", "/chat/completions", "/responses", "/messages", "/models")):
        said = msg("the base URL {url} goes on behind /v1, where {client} adds to it", url=url, client=client.title)
        yield Trouble("CLT012", Severity.ERROR, said, place)
    elif ends and not client.with_v1:
        said = msg("the base URL {url} ends with /v1, which {client} adds itself", url=url, client=client.title)
        yield Trouble("CLT012", Severity.ERROR, said, place)
    elif client.with_v1 and not ends:
        said = msg("the base URL {url} lacks /v1, which {client} does not add", url=url, client=client.title)
        yield Trouble("CLT011", Severity.ERROR, said, place)
    if served is not None and not _same(split_base_url(url), served.root):
        said = msg("it is set to {url}, not to {root}", url=url, root=served.root)
        yield Trouble("CON003", Severity.ERROR, said, place)


def _same(one: str, other: str) -> bool:
    """Whether two roots name one address; the names of this host are one."""

    def plain(root: str) -> tuple[str, str | None, int | None]:
        parts = urlsplit(root)
        host = "localhost" if parts.hostname in LOOPBACK else parts.hostname
        return parts.scheme, host, parts.port or {"http": 80, "https": 443}.get(parts.scheme)

    try:
        return plain(one) == plain(other)
    except ValueError:  # a port that is no number
        return False


def key_of(found: Present, environ: Mapping[str, str]) -> str:
    """The key that the client would send; "" where it has none, or a command makes it."""
    return environ.get(found.key_variable, "") if found.key_is is KeyIs.VARIABLE else found.key


def _key(found: Present, served: Served | None, environ: Mapping[str, str]) -> Iterator[Trouble]:
    key, place = key_of(found, environ), found.place
    if found.key_variable and not key.strip():
        said = msg("the variable {name}, which holds the key, is not set here", name=found.key_variable)
        yield Trouble("CLT001", Severity.ERROR, said, place, mends=False)
    elif found.key_is is KeyIs.NONE and served is not None and served.needs_key:
        yield Trouble("CLT001", Severity.ERROR, msg("the server asks for a key, and none is named"), place)
    if key and (key != key.strip() or any(c.isspace() for c in key)):
        yield Trouble("CLT003", Severity.ERROR, msg("the key holds a blank or a line break"), place, mends=False)


def _model(found: Present, served: Served | None) -> Iterator[Trouble]:
    known = [one.id for one in served.models] if served is not None else []
    for id in dict.fromkeys((found.model, *found.models)):
        if id and known and id not in known:
            said = msg("the server knows no model {id}; it serves {known}", id=repr(id), known=", ".join(known[:5]))
            yield Trouble("CLT015", Severity.ERROR, said, found.place)
    if not found.model and not found.model_in_code:
        yield Trouble("CLT015", Severity.WARNING, msg("no model id is set"), found.place)


def unspoken(client: Client, served: Served) -> Iterator[Trouble]:
    """CON008 where the server has no route for the client's protocol."""
    if client.protocol not in served.spoken:
        said = msg(
            "the server has no route {path}, which {client} asks", path=client.protocol.value, client=client.title
        )
        yield Trouble("CON008", Severity.ERROR, said, mends=False)


def _size(client: Client, found: Present, served: Served | None) -> Iterator[Trouble]:
    context = served.context_of(found.model or "") if served is not None else None
    if served is not None:
        yield from unspoken(client, served)
    if context is None:
        return
    if found.context_tokens is not None and found.context_tokens != context:
        said = msg(
            "the configuration says a context of {told} tokens, the server {context}",
            told=found.context_tokens, context=context,
        )  # fmt: skip
        severity = Severity.ERROR if found.context_tokens > context else Severity.WARNING
        yield Trouble("CON004", severity, said, found.place)
    yield from too_small(client, context)


def too_small(client: Client, context: int | None) -> Iterator[Trouble]:
    """CON005 where the served context leaves no room for the client's own prompt and one answer."""
    if context is None or context >= client.needed_tokens:
        return
    said = msg(
        "the served context of {context} tokens is too small for {client}: its own prompt takes about {prompt}, an"
        " answer {answer}; serve with --max-model-len {needed} or more",
        context=context, client=client.title, prompt=client.prompt_tokens, answer=client.answer_tokens,
        needed=client.needed_tokens,
    )  # fmt: skip
    yield Trouble("CON005", Severity.ERROR, said, mends=False)


def proxied(url: str, environ: Mapping[str, str]) -> Iterator[Trouble]:
    """CLT030 where a proxy is set that requests to `url` would go through."""
    host = urlsplit(url).hostname
    named = [name for name in PROXIES if environ.get(name)]
    spared = f"{environ.get('no_proxy', '')},{environ.get('NO_PROXY', '')}".replace(" ", "").split(",")
    if (
        host
        and named
        and not any(s == "*" or (s and (host == s or host.endswith(f".{s.lstrip('.')}"))) for s in spared)
    ):
        said = msg(
            "{names} is set, and NO_PROXY does not name {host}: requests may go to the proxy",
            names=", ".join(named), host=host,
        )  # fmt: skip
        yield Trouble("CLT030", Severity.WARNING, said, mends=False)
