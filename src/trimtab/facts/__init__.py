"""What is true of a model, a GPU, a workload and this host. Pure, but for `probe.py`."""
