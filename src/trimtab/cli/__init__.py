"""The door: one file per verb, which composes and holds no logic. Nobody imports it."""
