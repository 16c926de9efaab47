"""`trimtab gateway` from the command line: check, schema, start, reload, end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import psutil
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from ruamel.yaml import YAML

from tests.gateway.fake_back_end import back_end
from tests.gateway.process import ADMIN, KEY, Gateway, gateway, until
from trimtab.gateway.secret import Secret
from trimtab.gateway.store.database import open_store
from trimtab.gateway.store.providers import master_key, put_provider
from trimtab.gateway.store.tables import clock

TOP = Path(__file__).parents[2]
CONFIG = "local: false\nback_ends:\n  b: {url: http://127.0.0.1:9}\nmodels:\n  m: {targets: [{back_end: b}]}\n"


def trimtab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "gateway", *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_check_tells_findings_with_lines_and_exits_with_1(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("listen: 127.0.0.1:0\nstor: x\n")
    done = trimtab("check", str(file))
    assert done.returncode == 1
    assert f"{file}:2:1: error: there is no field 'stor'" in done.stdout
    report = json.loads(trimtab("check", str(file), "--json").stdout)
    assert report["findings"][0]["hint"] == "Did you mean store?"


def test_check_of_a_sound_file_exits_with_0(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("listen: 127.0.0.1:0\n" + CONFIG)
    assert trimtab("check", str(file)).returncode == 0


def test_check_looks_at_the_store_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, store = tmp_path / "gateway.yaml", tmp_path / "made" / "store.db"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    keyed = "listen: 127.0.0.1:0\nback_ends:\n  b: {url: http://127.0.0.1:9, key: {stored: cloud}}\n"

    def found(text: str, more: str = "") -> str:
        file.write_text(f"{text}store: {more or store}\n")
        return trimtab("check", str(file)).stdout

    assert "0 errors" in found("listen: 127.0.0.1:0\n")
    assert not store.parent.exists()
    assert "which is not made yet\n  -> Store it: trimtab keys provider set cloud" in found(keyed)
    opened = open_store(str(store), store)
    assert ":3:38: error: the store has no key of a provider cloud" in found(keyed)
    put_provider(opened, "cloud", Secret("sk-secret"), master_key(tmp_path / "config/trimtab/master.key", make=True))
    with opened.reading() as connection:
        before = connection.execute(sa.select(clock.c.version)).scalar_one()
        assert "0 errors" in found(keyed)
        monkeypatch.setenv("TRIMTAB_MASTER_KEY", Fernet.generate_key().decode())
        assert "the master key does not open the key of cloud" in found(keyed)
    with opened.writing() as to:
        assert to.version == before + 1
        to.connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    opened.close()
    assert ":2:1: error: the store" in (told := found("listen: 127.0.0.1:0\n"))
    assert "was made by a newer Trimtab" in told
    (tmp_path / "text").write_text("no database at all, whatever its length may be")
    assert "file is not a database" in found("listen: 127.0.0.1:0\n", str(tmp_path / "text"))
    assert "/proc/version/store.db cannot be used" in found("listen: 127.0.0.1:0\n", "/proc/version/store.db")
    nobody = "postgresql://u:sk-secret@127.0.0.1:9/x"
    assert "connection failed" in (told := found("listen: 127.0.0.1:0\n", nobody))
    assert "sk-secret" not in told


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = trimtab("check", str(tmp_path / "no.yaml"))
    assert (done.returncode, "no.yaml: No such file" in done.stderr) == (2, True)


def test_the_schema_takes_the_example() -> None:
    schema = json.loads(trimtab("schema").stdout)
    example = YAML(typ="safe").load((TOP / "docs" / "examples" / "gateway.yaml").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(example, schema)
    assert schema["$defs"]["ModelConfig"]["properties"]["fall_back"]["description"]


def test_a_start_with_a_faulty_file_names_fault_and_line(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("stor: x\nlocal: 3\n")
    done = trimtab("--config", str(file))
    assert done.returncode == 2
    assert f"{file}, line 1: there is no field 'stor' in the file (and 1 more" in done.stderr


def test_it_starts_quickly_and_ends_when_told(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG) as running:
        cpu = psutil.Process(running.child.pid).cpu_times()
        assert cpu.user + cpu.system < 1.0
        status, _, body = running.ask("GET", "/v1/models")
        assert (status, [m["id"] for m in json.loads(body)["data"]]) == (200, ["m"])
    assert running.child.returncode == 0


def test_back_ends_of_the_command_line_are_asked_with_the_engine_s_key(tmp_path: Path) -> None:
    with back_end() as behind:
        words, environ = ("--back-end", behind.url), {"VLLM_API_KEY": "sk-of-the-engine", "TRIMTAB_GATEWAY_KEY": ""}
        with gateway(tmp_path, "local: false\n", *words, environ=environ) as running:
            running.said("there is no key yet")
            made = running.ask("POST", "/admin/keys", {}, {"Authorization": f"Bearer {ADMIN}"})[2]
            key = {"Authorization": f"Bearer {json.loads(made)['text']}"}
            body = {"model": "listed", "messages": []}
            until(lambda: running.ask("POST", "/v1/chat/completions", body, key)[0] == 200, "an answer")
        assert behind.seen[0][1]["authorization"] == "Bearer sk-of-the-engine"


@contextmanager
def streaming(running: Gateway) -> Iterator[http.client.HTTPResponse]:
    """A stream of which the first event has come."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    body = json.dumps({"model": "m", "messages": [], "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})
    answer = connection.getresponse()
    assert b"first" in answer.readline()
    yield answer
    connection.close()


def refused(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_lets_a_stream_end(tmp_path: Path, workers: str) -> None:
    with back_end() as behind:
        config = CONFIG.replace("http://127.0.0.1:9", behind.url)
        with gateway(tmp_path, config, "--workers", workers) as running, streaming(running) as answer:
            running.child.send_signal(signal.SIGTERM)
            until(lambda: refused(running.port), "no new connection")
            behind.go.set()
            assert b"[DONE]" in answer.read()
            assert running.child.wait(20) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_signal_ends_at_once(tmp_path: Path, workers: str) -> None:
    with back_end() as behind:
        config = CONFIG.replace("http://127.0.0.1:9", behind.url)
        with gateway(tmp_path, config, "--workers", workers) as running, streaming(running):
            running.child.send_signal(signal.SIGTERM)
            until(lambda: refused(running.port), "no new connection")
            running.child.send_signal(signal.SIGTERM)
            assert running.child.wait(15) == 0
            running.said("ended with 1 requests unanswered")


def test_sighup_reloads_and_a_faulty_file_changes_nothing(tmp_path: Path) -> None:
    with gateway(tmp_path, CONFIG) as running:
        file = tmp_path / "gateway.yaml"
        file.write_text(CONFIG.replace("  m:", "  n:"))
        os.kill(running.child.pid, signal.SIGHUP)
        running.said("reloaded: 1 models")
        assert b'"id":"n"' in running.ask("GET", "/v1/models")[2]
        file.write_text(CONFIG + "stor: x\n")
        os.kill(running.child.pid, signal.SIGHUP)
        running.said("not reloaded: .*line 6: there is no field 'stor'")
        assert b'"id":"n"' in running.ask("GET", "/v1/models")[2]
