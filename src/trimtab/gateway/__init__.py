"""The gateway: one key and one URL in front of model servers; it parses HTTP once on each side and copies bytes."""
