"""Popular models as data, one file per family: their config keys, so that an id works without network."""
