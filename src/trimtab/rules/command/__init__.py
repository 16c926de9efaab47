"""Rules on a launch command: what `trimtab lint` says before anything is started. One file a rule."""
