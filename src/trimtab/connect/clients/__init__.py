"""One file a client program; `connect/registry.py` lists them."""
