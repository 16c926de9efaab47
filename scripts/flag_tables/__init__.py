"""Makes the flag tables of `trimtab.engine` from vLLM's own packages; nothing here is shipped."""
