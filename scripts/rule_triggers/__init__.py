"""Makes `src/trimtab/rules/triggers.json`: by which words a text may concern a rule on logs or on clients' errors."""
