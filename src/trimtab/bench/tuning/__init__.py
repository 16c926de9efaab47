"""The search for a faster launch: which flag to change next, what a difference is worth, what was tried."""
