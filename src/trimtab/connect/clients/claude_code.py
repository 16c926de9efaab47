"""Claude Code: variables in settings.json. Read in @anthropic-ai/claude-code 2.1.332 and by running it."""

from __future__ import annotations

from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, Trouble, text_at, tokens_at
from trimtab.connect.documents import ABSENT, Document, Form
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg
from trimtab.rules.rule import Severity

ENV = "env"
URL, MODEL, CONTEXT = "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_MAX_CONTEXT_TOKENS"
LARGE = ("ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL")
SMALL = "ANTHROPIC_DEFAULT_HAIKU_MODEL"
ANSWER = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"
KEYS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY")
HELPER = "apiKeyHelper"
PRINTS = "printenv "
MOST_ANSWER = 32_000
"""What it asks for by itself; a quarter of a smaller context leaves room for the prompt."""


def answer_of(connection: Connection) -> int | None:
    """Tokens of one answer, of which the server must have room beside the prompt."""
    return min(MOST_ANSWER, connection.context_tokens // 4) if connection.context_tokens else None


def variables(connection: Connection) -> dict[str, str]:
    """What it reads, without the key; context and answer where the server states its context."""
    told = {URL: connection.root, MODEL: connection.model, SMALL: connection.small}
    told |= dict.fromkeys(LARGE, connection.model)
    answer = answer_of(connection)
    if answer is not None:
        told |= {ANSWER: str(answer), CONTEXT: str(connection.context_tokens)}
    return told


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The variables in the user's settings; the key is printed by a command, so that no file holds it."""
    literal = connection.written_key
    changes = [Change((ENV, name), value) for name, value in variables(connection).items()]
    changes += [
        Change((HELPER,), ABSENT if literal else PRINTS + connection.key_env),
        Change((ENV, KEYS[0]), literal or ABSENT, secret=connection.write_key),
        Change((ENV, KEYS[1]), ABSENT),
    ]
    return (FileEdit(_home(around) / "settings.json", Form.JSON, tuple(changes)),)


def _home(around: Surroundings) -> Path:
    return around.directory("CLAUDE_CONFIG_DIR", ".claude")


def read(files: Files) -> Present | None:
    """The settings of the project before those of the user, and the environment where neither has a value."""
    around = files.around
    named = [around.cwd / ".claude" / "settings.local.json", around.cwd / ".claude" / "settings.json"]
    places = [*named, _home(around) / "settings.json"]
    found = [(str(file), document) for file in places if (document := files.document(file, Form.JSON)) is not None]
    documents = [document for _, document in found]
    place = next((file for file, document in found if text_at(document, (ENV, URL)) is not None), "")
    if not place and URL in around.environ:
        place = f"${URL}"
    if not place and not found:
        return None

    def value(name: str) -> str | None:
        set_here = (text_at(document, (ENV, name)) for document in documents)
        return next((text for text in set_here if text is not None), around.environ.get(name))

    key_is, variable, key = _key(documents, around)
    models = tuple(text for name in (*LARGE, SMALL) if (text := value(name)))
    return Present(
        place=place or found[-1][0],
        base_url=value(URL),
        model=value(MODEL) or next((m for d in documents if (m := text_at(d, ("model",)))), None),
        models=models,
        key_is=key_is,
        key_variable=variable,
        key=key,
        context_tokens=next((n for d in documents if (n := tokens_at(d, (ENV, CONTEXT)))), None),
        troubles=tuple(_login(files, value(URL), key_is)) + tuple(_aliases(value(URL), models, place)),
    )


def _key(documents: list[Document], around: Surroundings) -> tuple[KeyIs, str, str]:
    written = next((text for d in documents for name in KEYS if (text := text_at(d, (ENV, name)))), "")
    helper = next((text for d in documents if (text := text_at(d, (HELPER,)))), "")
    if written:
        return KeyIs.WRITTEN, "", written
    if helper.startswith(PRINTS):
        return KeyIs.VARIABLE, helper.removeprefix(PRINTS).strip(), ""
    if helper:
        return KeyIs.COMMAND, "", ""
    named = next((name for name in KEYS if around.environ.get(name)), "")
    return (KeyIs.VARIABLE, named, "") if named else (KeyIs.NONE, "", "")


def _login(files: Files, url: str | None, key_is: KeyIs) -> list[Trouble]:
    """A login of its own is what it uses where no key is named."""
    login = _home(files.around) / ".credentials.json"
    if key_is is not KeyIs.NONE or not url or not login.is_file():
        return []
    said = msg("no key is named, so it sends the login of its own account to your server")
    return [Trouble("CLT036", Severity.ERROR, said, str(login))]


def _aliases(url: str | None, models: tuple[str, ...], place: str) -> list[Trouble]:
    """Without aliases its small tasks ask for a model that only Anthropic serves."""
    if not url or len(models) == len(LARGE) + 1:
        return []
    names = ", ".join((*LARGE, SMALL))
    said = msg("not all of {names} are set: it then asks for models that your server does not have", names=names)
    return [Trouble("CLT015", Severity.ERROR, said, place)]


def snippet(connection: Connection) -> str:
    """One run with the environment alone."""
    lines = [f"export {name}='{value}'" for name, value in variables(connection).items()]
    lines.append(f'export {KEYS[0]}="${connection.key_env}"' if connection.needs_key else f"export {KEYS[0]}=none")
    return "\n".join([*lines, "claude -p 'Name three colours.'"])


CLIENT = Client(
    name="claude-code",
    title="Claude Code",
    protocol=Protocol.MESSAGES,
    package="npm @anthropic-ai/claude-code",
    version="2.1.332",
    with_v1=False,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(msg("The key is printed by a command (apiKeyHelper), from the variable in the environment of claude."),),
    prompt_tokens=12_400,
    answer_tokens=4_000,
    needs_tools=True,
)
