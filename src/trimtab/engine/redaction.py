"""Take secrets and private names out of text that may be shown to others: keys, tokens, passwords, homes, hosts.

Two strengths: `hide_secrets` for what goes to the owner's own channels, `redact` for what goes to strangers. Doing it
twice changes nothing. What looks like a secret and is none is lost rather than kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

STARS = "***"
LEAST_KNOWN = 6  # a shorter known secret would blank ordinary words


class Private(msgspec.Struct, frozen=True):
    """What is known to be private: literal secrets, home directories, names of users and hosts."""

    secrets: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


# Names whose value is a secret. `*_token` is one only where it is no special token of a tokenizer (bos_token).
_TOKEN_OWNERS = (
    "hf|hub|auth|access|refresh|api|id|bearer|session|github|gitlab|modelscope|user|admin|service|csrf|xsrf|private|deploy"
    "|job|runner|vault|bot"
)
# Bounded and tried at the beginning of a word alone, so that no text takes more than linear time.
_SECRET_NAME = (
    r"(?:[\w.-]{0,64}(?:passw(?:or)?d|passphrase|secret(?:[_-]?(?:access[_-]?)?key)?|credentials?|api[_-]?keys?|apikey|access[_-]?key(?:[_-]?id)?"
    r"|private[_-]?key|account[_-]?key|signing[_-]?key|encryption[_-]?key|signature|sas[_-]?token)"
    rf"|(?:[\w.-]{{0,64}}[_.-])?(?:{_TOKEN_OWNERS})[_-]?token"
    r"|(?-i:[A-Z][A-Z0-9_]{0,64}_(?:TOKEN|KEY|PAT|PWD))|pwd|sig|x-amz-[\w-]{1,64})"
)
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_VALUE = rf"(?:\[\s*(?:(?:{_QUOTED}),?\s*)+\]|{_QUOTED}|(?:Bearer|Basic|Token)\s+[^\s,;'\"&}})\]]+|[^\s,;'\"&}})\]]+)"
_ASSIGNED = re.compile(
    rf"(?<![\w.-])(?P<name>{_SECRET_NAME})(?P<quote>[\"']?)(?P<sep>\s{{0,4}}[=:]\s{{0,4}})(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"(?P<key>(?<![\w-])[\"']?token[\"']?\s*[=:]\s*)(?P<value>\"[^\"]{8,}\"|'[^']{8,}'|[\w.+/=-]{8,})")
_FLAG = re.compile(rf"(?P<flag>(?<![\w-])--(?:{_SECRET_NAME}|token|key))(?P<gap>[\s,'\"]+)(?P<value>{_VALUE})", re.I)
# Without = or : only what has a secret's form is taken for one, letters and digits: "password incorrect" is prose.
_SAID = re.compile(
    r"(?P<key>(?<![\w.-])(?:\w{0,64}(?:passw(?:or)?d|passphrase|secret|credentials?"
    r"|(?:api|access|private|secret)[ _-]?key)|\w{0,64}_token|(?P<token>token))"
    r"(?:\s(?:is|was|provided|given|value)){0,2}[:=]?\s{1,4}[\"'`]?)"
    r"(?P<value>(?=[^\s\d]{0,256}\d)(?=[^\sA-Za-z]{0,256}[A-Za-z])"
    r"(?(token)[\w.~+/=!@#$%^&*-]{16,}|[\w.~+/=!@#$%^&*-]{6,}))",
    re.IGNORECASE,
)
_ENV = re.compile(
    rf"(?P<key>\bENV[ \t]{{1,4}}{_SECRET_NAME}[ \t]{{1,4}})(?P<value>[^\s=].*)", re.IGNORECASE
)  # Dockerfile
_HEADER = re.compile(
    r"(?P<key>[\"']?\b(?:proxy-)?authorization[\"']?\s*[:=,]\s*[\"']?)(?P<scheme>(?:Bearer|Basic|Token|Digest|ApiKey)\s+)?"
    r"(?P<value>[^\s'\",;)\]}]+)",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"(?P<key>[\"']?\b(?:set-)?cookie[\"']?\s*[:=]\s*)(?P<value>[^\r\n'\"]+)", re.IGNORECASE)
_BEARER = re.compile(r"\b(?P<key>(?:Bearer|Basic)\s+)(?P<value>[A-Za-z0-9._~+/=-]{8,})")
_IN_URL = re.compile(r"(?P<key>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://)(?P<value>[^\s/@'\"]{1,512})@", re.IGNORECASE)
_HF_VARIABLE = re.compile(r"(?P<key>\b(?:HF|HUGGING_?FACE)_\w+=)(?P<value>[^\s'\"]+|\"[^\"]*\"|'[^']*')")
_HARMLESS = re.compile(r"[\"']?(?:\d{1,2}|true|false|on|off|yes|no|none|null|\*\*\*|)[\"']?", re.IGNORECASE)
_SHAPES = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{12,}|\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{12,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bnvapi-[\w-]{20,}|\bxox[abposr]-[\w-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
    r"|\bms-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{20,}|\bpypi-[\w-]{30,}|\bnpm_[A-Za-z0-9]{30,}|\bya29\.[\w-]{20,}"
    r"|(?<=hooks\.slack\.com/services/)[\w/]+|(?<=/api/webhooks/)\d+/[\w-]+|(?<=/bot)\d{6,}:[\w-]{20,}"
    r"|(?<=webhook\.office\.com/)[\w/@-]+"
    r"|\beyJ[\w-]{8,2048}\.[\w-]{8,4096}\.[\w-]*|\bwandb_v\d_\w{20,}"
)
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# vLLM with --enable-log-requests writes what its users asked.
_PROMPT = re.compile(
    r"(?P<key>\bprompt: )(?:'.*'|\".*\")(?=, (?:params|prompt_token_ids|prompt_embeds)|$)", re.MULTILINE
)
_PROMPT_IDS = re.compile(r"(?P<key>\bprompt_token_ids: )\[[^\]]*\]?")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}\b")
_HOME = re.compile(r"(?:/home|/Users|/var/home)/(?![.*~])[^/\s'\":,;)\]]+|[A-Za-z]:\\+Users\\+[^\\\s'\":,;]+")
_IPV4 = re.compile(r"(?<![\d.])(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
_PACKAGE = re.compile(r"[-_]cu\d+\D{1,3}$|==$|version\W{1,3}$|\bv$", re.IGNORECASE)


def hide_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without keys, tokens, passwords, Authorization headers and the literal `secrets`."""
    for secret in sorted({s for s in secrets if len(s) >= LEAST_KNOWN}, key=len, reverse=True):
        text = text.replace(secret, STARS)
    text = _PEM.sub(STARS, text)
    text = _IN_URL.sub(rf"\g<key>{STARS}@", text)
    text = _HEADER.sub(lambda m: f"{m['key']}{m['scheme'] or ''}{STARS}", text)
    text = _COOKIE.sub(rf"\g<key>{STARS}", text)
    text = _ASSIGNED.sub(lambda m: f"{m['name']}{m['quote']}{m['sep']}{_starred(m['value'])}", text)
    text = _TOKEN.sub(lambda m: m["key"] + _starred(m["value"]), text)
    text = _FLAG.sub(
        lambda m: m[0] if m["value"].startswith("--") else m["flag"] + m["gap"] + _starred(m["value"]), text
    )
    text = _HF_VARIABLE.sub(lambda m: m["key"] + _starred(m["value"]), text)
    text = _BEARER.sub(rf"\g<key>{STARS}", text)
    text = _ENV.sub(rf"\g<key>{STARS}", text)
    text = _SAID.sub(rf"\g<key>{STARS}", text)
    return _SHAPES.sub(STARS, text)


def redact(text: str, private: Private) -> str:
    """`text` without secrets, prompts, home directories, mail addresses, and names of users and hosts."""
    text = hide_secrets(text, private.secrets)
    text = _PROMPT.sub(rf"\g<key>{STARS}", text)
    text = _PROMPT_IDS.sub(rf"\g<key>[{STARS}]", text)
    for home in sorted(private.homes, key=len, reverse=True):
        if len(home) > 1:
            text = re.sub(rf"{re.escape(home.rstrip('/'))}(?![\w.-])", "~", text)
    text = _HOME.sub("~", text)
    text = _EMAIL.sub("MAIL", text)
    text = _names(text, private.hosts, "HOST")
    text = _names(text, private.users, "USER")
    text = _IPV4.sub(_address(text), text)
    return _IPV6.sub(_address6, text)


def _starred(value: str) -> str:
    """The value's quotes stay, so that what was JSON still is; numbers and switches are no secrets."""
    if _HARMLESS.fullmatch(value):
        return value
    if value[:1] == "[":
        return f"[{value[1:].lstrip()[:1]}{STARS}{value[1:].lstrip()[:1]}]"
    return f"{value[0]}{STARS}{value[0]}" if value[:1] in "\"'" else STARS


def _names(text: str, names: Iterable[str], by: str) -> str:
    for name in sorted({n for n in names if len(n) > 2 and n not in _COMMON}, key=len, reverse=True):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", by, text)
    return text


_COMMON = frozenset({"root", "localhost", "user", "ubuntu", "admin", "debian", "ec2-user", "vllm", "trimtab"})


def _address6(match: re.Match[str]) -> str:
    """A time of day or a scope of C++ has no such form; this host's own address stays."""
    from ipaddress import IPv6Address

    try:
        found = IPv6Address(match[0])
    except ValueError:
        return match[0]
    return match[0] if found.is_loopback or found.is_unspecified else "ADDRESS"


def _address(text: str) -> Callable[[re.Match[str]], str]:
    """An address, unless it is a version of four numbers after a package's name, or no address at all."""

    def shown(match: re.Match[str]) -> str:
        is_address = all(int(part) < 256 for part in match[0].split("."))
        return "ADDRESS" if is_address and not _PACKAGE.search(text[: match.start()][-40:]) else match[0]

    return shown
