"""What went wrong with the hub, in our own errors: one text and one next step for each case."""

from __future__ import annotations

import difflib
import errno
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.errors import HostError, ModelError, TrimtabError, UpstreamError, UsageError
from trimtab.facts.catalogue.lookup import entries
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

    from trimtab.facts.probe.hub_settings import Hub

SUGGESTIONS = 3
LISTING_S = 5.0


def client_errors() -> tuple[type[Exception], ...]:
    """What the hub's client raises; OSError covers its HTTP errors, a full disk and a cache without permission."""
    import httpx2
    from huggingface_hub.errors import HFValidationError

    return (httpx2.HTTPError, OSError, HFValidationError)


def may_use_cache(problem: TrimtabError) -> bool:
    """Whether the cached copy answers instead: the hub is away or fails, and nobody has refused anything."""
    return isinstance(problem, UpstreamError | Unreachable)


class Unreachable(HostError):
    """The hub cannot be reached from this machine."""


def not_cached(model_id: str, cache: Path) -> ModelError:
    return ModelError(
        msg("{id} is not in the cache {cache}, or not whole, and the hub may not be asked (HF_HUB_OFFLINE)",
            id=model_id, cache=cache),
        hint=msg("Unset HF_HUB_OFFLINE and run again, or name another cache with HF_HOME."),
    )  # fmt: skip


def explain(error: Exception, model_id: str, hub: Hub, revision: str) -> TrimtabError:
    """The error that says what `error` means for the one who asked for `model_id`."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        # The client's own look-up of one file failed; what failed is the cause.
        return explain(error.__cause__, model_id, hub, revision)
    if isinstance(error, HfHubHTTPError):
        return _refused(error, model_id, hub, revision)
    if isinstance(error, httpx2.HTTPError):
        return _unreachable(error, hub)
    if isinstance(error, OSError) and error.errno is not None:
        return _disk(error, hub.cache)
    return UpstreamError(
        msg("{endpoint} gave no usable answer for {id}: {reason}", endpoint=hub.endpoint, id=model_id,
            reason=first_line(error)),
        hint=msg("Check HF_ENDPOINT: not every mirror speaks the hub's whole API."),
    )  # fmt: skip


def no_hub(hub: Hub, error: Exception) -> UpstreamError:
    """What answers at the endpoint is something else: a login page, a proxy, another service."""
    return UpstreamError(
        msg("{endpoint} does not answer as a hub: {reason}", endpoint=hub.endpoint, reason=first_line(error)),
        hint=msg("Check HF_ENDPOINT and the proxy variables, and that no login page stands before it."),
    )


def _unreachable(error: Exception, hub: Hub) -> HostError:
    return Unreachable(
        msg("cannot reach {endpoint}: {reason}", endpoint=hub.endpoint, reason=first_line(error)),
        hint=msg(
            "Check the network and the proxy (HTTPS_PROXY); set HF_ENDPOINT to a mirror, or VLLM_USE_MODELSCOPE=1 for"
            " ModelScope; with the model in the cache, HF_HUB_OFFLINE=1."
        ),
    )


def _disk(error: OSError, cache: Path) -> HostError:
    where = error.filename or cache
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HostError(
            msg("the disk of {path} is full", path=where),
            hint=msg("Free some space, or name a larger disk with HF_HOME; what has come so far is kept."),
        )
    return HostError(
        msg("cannot write to {path}: {reason}", path=where, reason=error.strerror or str(error)),
        hint=msg("Name a directory that you may write to with HF_HOME."),
    )


def _refused(error: HfHubHTTPError, model_id: str, hub: Hub, revision: str) -> TrimtabError:
    from huggingface_hub import get_token
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    status, page = error.response.status_code, f"{hub.endpoint}/{model_id}"
    logged_in = bool(hub.token if hub.token is not None else get_token())
    if isinstance(error, GatedRepoError):
        return _gated(model_id, page, logged_in=logged_in)
    if isinstance(error, RevisionNotFoundError):
        return ModelError(
            msg("{id} has no revision {revision}", id=model_id, revision=revision),
            hint=msg("See its branches and tags at {page}/tree/main.", page=page),
        )
    if isinstance(error, RepositoryNotFoundError):
        return missing(model_id, hub, logged_in=logged_in)
    if status in (401, 403):
        return _token_refused(status, model_id, hub, logged_in=logged_in)
    if status == 404:
        return ModelError(
            msg("{endpoint} knows no model {id}", endpoint=hub.endpoint, id=model_id),
            hint=msg("Check the id and HF_ENDPOINT: a mirror may lack it."),
        )
    if status == 429:
        hint = msg("Wait some minutes; with a token (HF_TOKEN) the hub allows more.")
        return UpstreamError(msg("{endpoint} refuses more requests for now (429)", endpoint=hub.endpoint), hint=hint)
    return UpstreamError(
        msg("{endpoint} failed with {status}", endpoint=hub.endpoint, status=status),
        hint=msg("Try again later, or another mirror (HF_ENDPOINT)."),
    )


def _gated(model_id: str, page: str, *, logged_in: bool) -> ModelError:
    if logged_in:
        return ModelError(
            msg("{id} is gated, and your token's account has not been let in", id=model_id),
            hint=msg(
                "Ask for access at {page}; a fine-grained token also needs the right to read gated repositories.",
                page=page,
            ),
        )
    return ModelError(
        msg("{id} is gated, and you are not logged in", id=model_id),
        hint=msg("Accept its terms at {page}, then set HF_TOKEN, or run: hf auth login", page=page),
    )


def _token_refused(status: int, model_id: str, hub: Hub, *, logged_in: bool) -> TrimtabError:
    if logged_in and status == 401:
        return UsageError(
            msg("{endpoint} does not accept your token (401)", endpoint=hub.endpoint),
            hint=msg("Set HF_TOKEN to a valid token, or unset it; hf auth whoami tells whose it is."),
        )
    if not logged_in:
        return ModelError(
            msg("{endpoint} wants a token for {id} ({status})", endpoint=hub.endpoint, id=model_id, status=status),
            hint=msg("Set HF_TOKEN, or run: hf auth login"),
        )
    return ModelError(
        msg("{endpoint} forbids your token to read {id} (403)", endpoint=hub.endpoint, id=model_id),
        hint=msg("Give the token the right to read this repository, or take another."),
    )


def missing(model_id: str, hub: Hub, *, logged_in: bool) -> ModelError:
    """No such model, or a private one: the hub does not tell which. Names the nearest ids that exist."""
    near = nearest(model_id, hub)
    said: Message = (
        msg("{endpoint} has no model {id} that your token may see", endpoint=hub.endpoint, id=model_id)
        if logged_in
        else msg("{endpoint} has no model {id}, or it is private", endpoint=hub.endpoint, id=model_id)
    )
    if near:
        return ModelError(said, hint=msg("Did you mean {near}?", near=", ".join(near)))
    hint = msg("Check the spelling (OWNER/NAME). For a private model set HF_TOKEN; a directory starts with / or ./")
    return ModelError(said, hint=hint)


def nearest(model_id: str, hub: Hub) -> list[str]:
    """Ids that look like `model_id`: among `Hub.known_ids`, and its owner's models if the hub answers."""
    owner, _, name = model_id.rpartition("/")
    known = hub.known_ids if hub.known_ids is not None else [i for entry in entries() for i in entry.ids]
    candidates = [i for i in (*known, *_of_owner(owner, hub)) if i != model_id]
    by_lower = {c.lower(): c for c in candidates}
    found = difflib.get_close_matches(model_id.lower(), by_lower, SUGGESTIONS, 0.8)
    if not owner or not found:
        names = {c.rpartition("/")[2].lower(): c for c in candidates}
        found += [names[n].lower() for n in difflib.get_close_matches(name.lower(), names, SUGGESTIONS, 0.85)]
    return list(dict.fromkeys(by_lower[f] for f in found))[:SUGGESTIONS]


def _of_owner(owner: str, hub: Hub) -> list[str]:
    """The owner's most used models; none when the hub does not answer, for this only adds to another error."""
    if not owner:
        return []
    import httpx2

    try:
        answer = httpx2.get(
            f"{hub.endpoint}/api/models", params={"author": owner, "sort": "downloads", "limit": 500}, timeout=LISTING_S
        )
        found = answer.json() if answer.status_code == 200 else []
    except (httpx2.HTTPError, ValueError):
        return []
    return [m["id"] for m in found if isinstance(m, dict) and isinstance(m.get("id"), str)]


def first_line(error: Exception) -> str:
    """An error's first line that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
