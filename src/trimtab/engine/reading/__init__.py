"""How launches are read from each form of text; nothing is executed, the environment is never read."""
