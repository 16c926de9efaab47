"""The console: pages about the gateway that serves it. It holds no logic of its own: all is done by other rooms."""
