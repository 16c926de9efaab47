"""Certificates of a test's own."""

import subprocess
from pathlib import Path


def certificate(home: Path) -> tuple[Path, Path]:
    """Certificate and key of localhost."""
    cert, key = home / "cert.pem", home / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key
