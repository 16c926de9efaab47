"""A plan in the form that people deploy: one module a form, each a pure function from a launch to a text."""
