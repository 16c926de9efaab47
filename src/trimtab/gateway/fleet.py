"""The back ends and models of a configuration as the hot path wants them; what stays over a reload keeps its state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trimtab.errors import UsageError
from trimtab.gateway.addresses import base_of
from trimtab.gateway.config import PROTOCOLS, BackEndConfig, Config, TargetConfig
from trimtab.gateway.outbound import Address
from trimtab.gateway.paths import bases
from trimtab.gateway.routes import BackEnd, Between, Route, Routes, Target, no_translation
from trimtab.gateway.secret import Secret
from trimtab.messages import msg

NO_KEY = Secret("")
Listed = Mapping[str, Mapping[str, object]]  # the models of a back end: id -> its entry in /v1/models


class Fleet:
    """Builds `routes` from a configuration and what the back ends list. Its calls are made in the loop's thread."""

    def __init__(self, between: Between = no_translation) -> None:
        self._between = between
        self._config = Config()
        self._listed: dict[str, Listed] = {}
        self.back_ends: dict[str, BackEnd] = {}
        self.configs: Mapping[str, BackEndConfig] = {}
        self.routes = Routes({}, between)

    def apply(self, config: Config, keys: Mapping[str, Secret]) -> Routes:
        """The routes of a configuration, with the keys of its back ends. UsageError, and nothing changes.

        A back end whose name and address stay keeps its connections and what is known of its health. One that leaves
        gets no new request; what it answers now goes on.
        """
        urls = {name: base_of(c.url) for name, c in config.back_ends.items()}
        addresses = {name: Address(base.host, base.port, base.tls) for name, base in urls.items()}
        fixed = {n: _fixed(n, addresses[n], c.kind, keys.get(n, NO_KEY)) for n, c in config.back_ends.items()}
        for name in [n for n, b in self.back_ends.items() if addresses.get(n) != b.address]:
            self.back_ends.pop(name).pool.retire()
            self._listed.pop(name, None)
        for name, c in config.back_ends.items():
            back_end = self.back_ends.get(name)
            if back_end is None:
                back_end = self.back_ends[name] = BackEnd(name, addresses[name])
            base, bare = bases(urls[name].path)
            back_end.set(
                base=base, bare=bare, fixed=fixed[name], kind=c.kind, weight=c.weight, bounds=c.bounds,
                speaks=frozenset(c.protocols) if c.protocols is not None else PROTOCOLS[c.kind],
            )  # fmt: skip
        self._config, self.configs = config, config.back_ends
        return self._route()

    def learn(self, name: str, models: Listed) -> bool:
        """What a back end lists now; True when `routes` are other ones than before."""
        if name not in self.back_ends or self._listed.get(name) == models:
            return False
        self._listed[name] = models
        self._route()
        return True

    def _route(self) -> Routes:
        config, routes, entries = self._config, {}, {}
        named = {(t.back_end, t.model or model) for model, m in config.models.items() for t in m.targets}
        unnamed: dict[str, list[TargetConfig]] = {}
        for back_end, models in self._listed.items():
            for model in models:
                if (back_end, model) not in named:
                    unnamed.setdefault(model, []).append(TargetConfig(back_end, model))
        for name, m in config.models.items():
            levels = [(other, self._own(other, unnamed)) for other in _chain(name, config)]
            routes[name] = Route(
                name, (self._targets(model, targets, at) for at, (model, targets) in enumerate(levels)),
                affine=m.choose == "prefix-affine", hedge_after=m.hedge_after, long_prompt_bytes=m.long_prompt_bytes,
            )  # fmt: skip
            entries[name] = self._entry((t.back_end, t.model or name) for t in levels[0][1])
        for name, found in unnamed.items():
            if name not in routes:
                routes[name] = Route(name, [self._targets(name, found, 0)])
                entries[name] = self._entry((t.back_end, name) for t in found)
        self.routes = Routes(routes, self._between, entries)
        return self.routes

    def _own(self, name: str, unnamed: Mapping[str, Sequence[TargetConfig]]) -> Sequence[TargetConfig]:
        """A model's replicas: those of its entry, else whoever lists it."""
        entry = self._config.models.get(name)
        return entry.targets if entry is not None and entry.targets else unnamed.get(name, ())

    def _targets(self, model: str, targets: Iterable[TargetConfig], level: int) -> list[Target]:
        name = model if level else ""
        return [Target(self.back_ends[t.back_end], t.model or model, t.weight, level, name) for t in targets]

    def _entry(self, targets: Iterable[tuple[str, str]]) -> Mapping[str, object]:
        """What the first replica that lists the model says of it, with the shortest context of all."""
        told = [e for b, m in targets if (e := self._listed.get(b, {}).get(m)) is not None]
        lengths = [n for e in told if isinstance(n := e.get("max_model_len"), int)]
        return {**told[0], **({"max_model_len": min(lengths)} if lengths else {})} if told else {}


def _chain(name: str, config: Config) -> list[str]:
    """The model, then its fall-backs and in turn theirs; each once."""
    found, waiting = [name], list(config.models[name].fall_back)
    while waiting:
        following = waiting.pop(0)
        if following not in found:
            found.append(following)
            waiting = [*(config.models[following].fall_back if following in config.models else ()), *waiting]
    return found


def _fixed(name: str, address: Address, kind: str, secret: Secret) -> bytes:
    """The header lines that every request to the back end has. UsageError for a key that is no header value."""
    key = secret.reveal()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            msg("back end {name}: its key holds a line break or a character that a header cannot hold", name=name),
            hint=msg("A key is one line of printable ASCII."),
        )
    host = f"[{address.host}]" if ":" in address.host else address.host
    if address.port != (443 if address.tls else 80):
        host += f":{address.port}"
    lines = f"Host: {host}\r\nAccept-Encoding: identity\r\n"
    if key:
        lines += f"x-api-key: {key}\r\n" if kind == "anthropic" else f"Authorization: Bearer {key}\r\n"
    return lines.encode("latin-1")
