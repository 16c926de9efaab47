"""What vLLM accepts and emits, by version. Pure: no I/O."""
