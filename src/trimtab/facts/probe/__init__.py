"""The only I/O of the facts: the model hub, local model directories, NVIDIA cards and this host."""
