"""What `trimtab gateway check` finds between entries and on this host."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from trimtab.gateway.checking import check
from trimtab.gateway.config import Config
from trimtab.gateway.findings import Finding
from trimtab.gateway.reading import read
from trimtab.gateway.reference import page

TOP = Path(__file__).parents[2]
BACK_END = "listen: 127.0.0.1:0\nback_ends:\n  here: {url: http://127.0.0.1:9}\n"
FAULTS = {
    "unknown back end": ("models:\n  m: {targets: [{back_end: heer}]}", 5, "names the back end heer", "mean here?"),
    "no target": ("models:\n  m: {}", 5, "the model m has no target", "Add targets"),
    "loop": (
        "models:\n  a: {targets: [{back_end: here}], fall_back: [b]}\n  b: {targets: [], fall_back: [a]}", 5,
        "leads back to it: a -> b -> a", "Remove one",
    ),
    "itself": ("models:\n  a: {targets: [{back_end: here}], fall_back: [a]}", 5, "leads back to it: a -> a", ""),
    "a line break in a name": ('models:\n  "a\\nb": {targets: [{back_end: here}]}', 5, "cannot stand in a header", ""),
    "and in a target": (
        'models:\n  m: {targets: [{back_end: here, model: "a\\r\\nX: b"}]}', 5, "cannot stand in a header", "",
    ),
    "no name": ("models:\n  '': {targets: [{back_end: here}]}", 5, "an entry without a name", "before its colon"),
    "for ever": ("drain: .inf", 4, "drain: Expected `float` <= 1000000000", ""),
    "network": ("trusted_proxies: [10.0.0.300]", 4, "'10.0.0.300' does not appear to be", "10.0.0.0/8"),
    "origin": ("cors: [chat.example.com]", 4, "'chat.example.com' is no origin", "https://"),
    "collector": ("otlp: host:4318", 4, "otlp: 'host:4318' is no URL", "http://HOST:4318"),
    "half of TLS": ("tls_certificate: cert.pem", 4, "tls_certificate stands alone", "TLS needs"),
    "TLS file": ("tls_certificate: /no/cert.pem\ntls_key: /no/key.pem", 4, "/no/cert.pem cannot be read", "Mend"),
    "log": ("access_log: /no/such/log", 4, "/no/such/log cannot be written", "directory"),
}  # fmt: skip
BACK_ENDS = {
    "no URL": ("{url: localhost:8000}", "'localhost:8000' is no URL of a server", "http://HOST:PORT"),
    "a secret in a query": ("{url: 'http://h/v1?key=secret'}", "'http://h/v1' is no URL of a server", ""),
    "password": ("{url: 'http://u:secret@h'}", "holds a user or a password", "key: {env: NAME}"),
    "bad port": ("{url: 'http://h:99999'}", "is no URL of a server", ""),
    "protocol": ("{url: http://h, protocols: [chta]}", "has the protocol 'chta', which is none", "mean chat?"),
    "two keys": ("{url: http://h, key: {env: A, file: b}}", "names 2 places", "Name one"),
    "no key": ("{url: http://h, key: {}}", "names 0 places", "Name one"),
    "a key for its variable": ("{url: http://h, key: {env: sk-secret}}", "what env names is no variable", "env: NAME"),
    "variable": ("{url: http://h, key: {env: NO_SUCH}}", "is in $NO_SUCH, which is not set", "Set it"),
    "key file": ("{url: http://h, key: {file: /no/key}}", "/no/key cannot be read: No such file", "Mend"),
    "no number": ("{url: http://h, weight: .nan}", "weight: Expected `float`", ""),
    "a line break in a path": ('{url: http://h, health: "/a\\r\\nX: b"}', "cannot stand in a header", ""),
    "health": ("{url: http://h, health: up}", "the health path of b is 'up'", "/health"),
}


def found(text: str, environ: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    return check(read(text.encode(), "gateway.yaml"), environ or {})


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_between_entries(name: str) -> None:
    text, line, message, hint = FAULTS[name]
    first = found(BACK_END + text)[0]
    assert (first.line, first.severity) == (line, "error")
    assert message in str(first.message)
    assert hint in str(first.hint)


@pytest.mark.parametrize("name", BACK_ENDS)
def test_a_fault_of_a_back_end(name: str) -> None:
    entry, message, hint = BACK_ENDS[name]
    first = found(f"listen: 127.0.0.1:0\nback_ends:\n  b: {entry}\n")[0]
    assert first.line == 3
    assert message in str(first.message)
    assert hint in str(first.hint)
    assert "secret" not in str(first.message)


def test_a_taken_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        first = found(f"listen: 127.0.0.1:{port}\nback_ends: {{}}\n")[0]
    assert str(first.message) == f"port {port} on 127.0.0.1 is taken"


def test_a_certificate_with_another_key_is_found(tmp_path: Path) -> None:
    for name in ("one", "two"):
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        command += ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", "/CN=localhost"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    text = f"tls_certificate: {tmp_path}/one.pem\ntls_key: {tmp_path}/{{}}.key\n"
    assert found(BACK_END + text.format("one")) == ()
    assert "is not the private key of" in str(found(BACK_END + text.format("two"))[0].message)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tls_certificate: PIPE\ntls_key: PIPE\n", "is a pipe or a device"),
        ("models: {m: {targets: [{back_end: b}]}}\n", "is a pipe or a device"),
    ],
)
def test_a_pipe_is_told_and_not_waited_for(tmp_path: Path, text: str, told: str) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    key = ", key: {file: PIPE}" if "models" in text else ""
    first = found(
        (f"back_ends:\n  b: {{url: http://127.0.0.1:9{key}}}\nlisten: 127.0.0.1:0\n{text}").replace("PIPE", pipe)
    )
    assert [str(f.message) for f in first] == [f"{pipe} {told}"]


def test_a_fall_back_without_an_entry_is_a_warning() -> None:
    (only,) = found(BACK_END + "models:\n  m: {targets: [{back_end: here}], fall_back: [other]}\n")
    assert only.severity == "warning"


@pytest.mark.parametrize("name", ["gateway.yaml", "gateway-many.yaml"])
def test_an_example_of_the_documentation_is_sound(name: str) -> None:
    text = (TOP / "docs" / "examples" / name).read_text()
    keys = {"VLLM_API_KEY": "a", "CLOUD_API_KEY": "b"}
    assert found(text.replace("0.0.0.0:8080", "127.0.0.1:0"), keys) == ()


def test_the_cluster_of_the_example_is_the_service_that_a_plan_writes() -> None:
    words = ["plan", "Qwen/Qwen2.5-7B-Instruct", "--gpu", "A10", "-o", "k8s"]
    done = subprocess.run([sys.executable, "-m", "trimtab", *words], capture_output=True, text=True, check=True)
    services = [part for part in YAML(typ="safe").load_all(done.stdout) if part["kind"] == "Service"]
    (service,) = services
    address = f"http://{service['metadata']['name']}.default.svc:{service['spec']['ports'][0]['port']}/v1"
    assert address in (TOP / "docs" / "examples" / "gateway-many.yaml").read_text()


def test_the_reference_names_every_field() -> None:
    text = (TOP / "docs" / "gateway-reference.md").read_text()
    assert text == page()
    for name in Config.__struct_fields__:
        assert f"| `{name}` |" in text
