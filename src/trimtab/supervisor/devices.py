"""Which cards a new server takes: the emptiest that no other server of ours uses. Pure: facts in, cards out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtab.errors import HostError, UsageError
from trimtab.messages import msg


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU of this host: its name in CUDA_VISIBLE_DEVICES ("0", or "GPU-...") and its free memory."""

    device: str
    free_gib: float


def choose_devices(
    cards: Sequence[Card], count: int, claimed: Mapping[str, str], *, wanted: Sequence[str] = (), share: bool = False
) -> tuple[str, ...]:
    """The emptiest `count` cards that no server in `claimed` (device -> server) uses; or those `wanted`.

    With `share` claimed cards may be taken too. HostError naming the server in the way, or how many cards are free.
    """
    if wanted:
        return _checked(cards, count, claimed, wanted, share)
    free = [card for card in cards if share or card.device not in claimed]
    if len(free) < count:
        raise HostError(
            msg(
                "needs {count} cards, {free} of {all} are free; in use: {used}",
                count=count, free=len(free), all=len(cards),
                used=", ".join(f"{device} ({server})" for device, server in claimed.items()) or "none",
            ),
            hint=msg("End a server (trimtab down NAME), or name the cards and allow sharing: --devices 0,1 --share."),
        )  # fmt: skip
    best = sorted(free, key=lambda card: (-card.free_gib, cards.index(card)))[:count]
    order = [card.device for card in cards]
    return tuple(sorted((card.device for card in best), key=order.index))


def _checked(
    cards: Sequence[Card], count: int, claimed: Mapping[str, str], wanted: Sequence[str], share: bool
) -> tuple[str, ...]:
    known = [card.device for card in cards]
    for device in wanted:
        if device not in known:
            raise HostError(
                msg(
                    "there is no card {device} here; there are: {known}",
                    device=device,
                    known=", ".join(known) or "none",
                ),
                hint=msg("Name cards that nvidia-smi -L lists."),
            )
        if device in claimed and not share:
            raise HostError(
                msg("card {device} is used by the server {server}", device=device, server=claimed[device]),
                hint=msg("End it (trimtab down {server}), name other cards, or add --share.", server=claimed[device]),
            )
    if len(set(wanted)) < len(wanted):
        raise UsageError(
            msg("--devices {wanted} names a card twice", wanted=",".join(wanted)), hint=msg("Name each card once.")
        )
    if len(wanted) < count:
        raise UsageError(
            msg("needs {count} cards; --devices names {n}", count=count, n=len(wanted)),
            hint=msg("Name more cards, or lower the parallel sizes."),
        )
    return tuple(wanted)
