"""The table of devices, as data: devices.json, read by `facts/gpu.py`."""
