"""Rules on a host: what `trimtab check` and `trimtab up` say before an engine is started. One file a rule."""
