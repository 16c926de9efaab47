"""How each architecture's config becomes layers and weights, as vLLM builds them."""
