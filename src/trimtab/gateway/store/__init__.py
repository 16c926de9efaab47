"""What the gateway keeps: keys, plans, usage, provider keys. In SQLite, or in PostgreSQL for several gateways."""
