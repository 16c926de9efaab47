"""Makes `src/trimtab/rules/triggers.json`: what a text must hold to concern a rule on logs or on clients' errors."""
