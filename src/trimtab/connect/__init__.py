"""Client programs pointed at a server: what each wants, where its files live; read, merged, written, undone."""
