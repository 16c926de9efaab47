"""The calculation: memory, legal splits, capacity, plan. Pure: no I/O."""
