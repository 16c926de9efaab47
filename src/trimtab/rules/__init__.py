"""One rule engine, four subjects: command, host, log, client. Pure: no I/O."""
