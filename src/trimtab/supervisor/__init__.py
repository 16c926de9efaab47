"""One server kept alive: states, policy, process, readiness, journal, engine environments."""
