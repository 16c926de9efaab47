"""Rules on what a client meets: `trimtab doctor URL`, and texts of client errors. One file a rule."""
