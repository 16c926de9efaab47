"""What a server is verified by: one file and one function a criterion, listed in `registry`."""
