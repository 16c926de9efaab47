"""What profiling a vision or audio encoder takes: a batch of the largest items through the tower."""

from __future__ import annotations

from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.settings import Settings


def encoder_peak(settings: Settings, model: ModelFacts) -> int:
    """Bytes of the largest tower's activations for the items of one batch (`profile_run`, encoder part)."""
    if not settings.encoder or not settings.profile_encoder or (settings.runner == "v2" and settings.version < (0, 28)):
        return 0
    return max((0, *(_tower(settings, model, at) for at in range(len(model.towers)))))


def _tower(settings: Settings, model: ModelFacts, at: int) -> int:
    tower = model.towers[at]
    item = tower.tokens_per_item or 0
    if not item:
        return 0
    items = -(-max(settings.max_num_batched_tokens, item) // item)
    width = 4 * tower.hidden_size + 2 * tower.intermediate_size
    return items * item * width * model.element_bytes
