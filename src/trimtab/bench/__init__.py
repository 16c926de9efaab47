"""What a running server does: timed requests, verification, measurement."""
