"""Rules on an engine's log: what `trimtab doctor` says after a failure. One file a rule."""
