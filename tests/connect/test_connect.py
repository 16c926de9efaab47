"""`trimtab connect` from the command line: shown, written, undone, checked, on real files and a real socket."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.connect.conftest import CONTEXT, KEY, MODEL, serving
from trimtab.cli.main import run
from trimtab.connect.client import Client
from trimtab.connect.registry import clients
from trimtab.connect.values import Connection, Surroundings
from trimtab.engine.registry import ServerRecord
from trimtab.supervisor import registry
from trimtab.supervisor.process import boot_id, started_at
from trimtab.supervisor.states import State

WRITTEN = [client for client in clients() if client.edits is not None]
VARIABLES = ("TRIMTAB_API_KEY", "OPENAI_API_KEY")  # Cline knows the latter alone
NAMES = pytest.mark.parametrize("client", WRITTEN, ids=lambda client: client.name)
LENGTHLESS = ("client.json", "vscode")  # no length in the file, or two that together are it
OWN_STORE = ("zed", "vscode")  # the key is kept beside the file


def but(*names: str) -> pytest.MarkDecorator:
    """All clients with a file, without those of which it cannot hold."""
    chosen = [client for client in WRITTEN if client.name not in names]
    return pytest.mark.parametrize("client", chosen, ids=lambda client: client.name)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "XDG_CONFIG_HOME",
        "OPENCODE_CONFIG",
        "QWEN_HOME",
        "HTTP_PROXY",
        "CLINE_DIR",
        "CLINE_DATA_DIR",
        "CONTINUE_GLOBAL_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in VARIABLES:
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("TRIMTAB_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # the only one that Aider reads
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(client: Client, home: Path) -> list[Path]:
    told = Connection(root="http://h:1", model=MODEL)
    assert client.edits is not None
    return [edit.file for edit in client.edits(told, Surroundings({}, home, home))]


def everything(home: Path) -> dict[str, bytes]:
    found = (p for p in home.rglob("*") if p.is_file() and "state" not in p.relative_to(home).parts)
    return {str(p): p.read_bytes() for p in found}


def check(client: Client, url: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    run(["connect", client.name, "--check", "--url", url, "--json"])
    return {one["code"]: one["message"] for one in json.loads(capsys.readouterr().out)["troubles"]}


@NAMES
def test_written_checked_and_undone(
    client: Client, home: Path, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "CON001" in check(client, server, capsys)
    assert run(["connect", client.name, "--url", f"{server}/v1"]) == 0
    assert everything(home) == {}  # shown only
    assert run(["connect", client.name, "--url", f"{server}/v1", "--write"]) == 0
    text = "".join(data.decode() for data in everything(home).values())
    assert MODEL in text
    assert str(CONTEXT) in text or client.name in LENGTHLESS
    assert KEY not in text
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files(client, home))
    assert set(check(client, server, capsys)) <= ({"CLT001"} if client.name == "vscode" else set())
    assert run(["connect", client.name, "--undo"]) == 0
    assert everything(home) == {}
    assert run(["connect", client.name, "--undo"]) == 2


@but(*OWN_STORE)
def test_the_key_is_written_only_when_told(
    client: Client, home: Path, server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["connect", client.name, "--url", server, "--write", "--write-key"]) == 0
    assert KEY not in capsys.readouterr().out
    assert any(KEY.encode() in data for data in everything(home).values())
    for name in VARIABLES:
        monkeypatch.delenv(name)
    assert run(["connect", client.name, "--check", "--url", server, "--key", KEY]) == 0


@but("zed")  # sends nothing without a key
def test_a_server_without_key_needs_no_variable(
    client: Client, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name)
    with serving(key="") as root:
        assert run(["connect", client.name, "--url", root, "--write"]) == 0
        assert check(client, root, capsys) == {}


@NAMES
def test_a_broken_file_is_named_and_left(
    client: Client, home: Path, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = files(client, home)
    for bad in (b'{"a": [\n', b"\xff\xfe\x00", b'"x'):
        for file in named:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(bad)
        assert run(["connect", client.name, "--url", server, "--write"]) == 2
        assert str(named[0]) in capsys.readouterr().err
        assert set(everything(home).values()) == {bad}


@but("litellm", "vscode")  # further entries of theirs stay
def test_another_model_and_another_server_are_told(
    client: Client, home: Path, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["connect", client.name, "--url", server, "--write"]) == 0
    file = files(client, home)[0]
    file.write_text(file.read_text().replace(MODEL, "gone-13b").replace(server, "http://127.0.0.1:9"))
    found = check(client, server, capsys)
    assert {"CLT015", "CON003"} <= set(found)
    assert "gone-13b" in found["CLT015"]
    assert run(["connect", client.name, "--check", "--write", "--url", server]) == 0


def test_codex_stale_block_is_found_and_mended(home: Path, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    codex = next(client for client in WRITTEN if client.name == "codex")
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    mine = '# mine\n[model_providers.old]\nwire_api = "chat"  # dropped\nbase_url = "http://old/v1"\n\n[tui]\nx = 1\n'
    file.write_text(mine)
    file.chmod(0o640)
    assert "CON002" in check(codex, server, capsys)
    assert run(["connect", "codex", "--write", "--url", server]) == 0
    text = file.read_text()
    assert 'wire_api = "responses"  # dropped' in text
    assert "# mine" in text
    assert file.stat().st_mode & 0o777 == 0o640
    assert run(["connect", "codex", "--undo"]) == 0
    assert file.read_text() == mine


def test_undo_takes_our_values_back_from_a_file_that_changed_since(home: Path, server: str) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{\n  "env": {"ANTHROPIC_MODEL": "opus", "MINE": "1"}\n}\n')
    assert run(["connect", "claude-code", "--write", "--url", server]) == 0
    file.write_text(file.read_text().replace('"MINE": "1"', '"MINE": "2"'))
    assert run(["connect", "claude-code", "--undo"]) == 0
    assert json.loads(file.read_text()) == {"env": {"ANTHROPIC_MODEL": "opus", "MINE": "2"}}


def test_undo_refuses_where_our_value_was_changed(home: Path, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / ".claude" / "settings.json"
    assert run(["connect", "claude-code", "--write", "--url", server]) == 0
    changed = file.read_text().replace(MODEL, "another")
    file.write_text(changed)
    assert run(["connect", "claude-code", "--undo"]) == 2
    assert str(file) in capsys.readouterr().err
    assert file.read_text() == changed


def test_writing_twice_is_undone_at_once(home: Path, server: str) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('model = "mine"\n')
    for variable in ("ONE_KEY", "OTHER_KEY"):
        assert run(["connect", "codex", "--write", "--url", server, "--key", KEY, "--key-env", variable]) == 0
    assert run(["connect", "codex", "--undo"]) == 0
    assert file.read_text() == 'model = "mine"\n'


def test_links_stay_links(home: Path, server: str) -> None:
    real = home / "dotfiles" / "codex.toml"
    real.parent.mkdir()
    real.write_text("")
    (home / ".codex").mkdir()
    link = home / ".codex" / "config.toml"
    link.symlink_to(real)
    assert run(["connect", "codex", "--write", "--url", server]) == 0
    assert link.is_symlink()
    assert MODEL in real.read_text()


@pytest.mark.parametrize(
    ("base_url", "code"),
    [("{root}/v1", "CLT012"), ("{root}/v1/v1", "CLT012"), ("localhost:8000", "CLT017"), ("{root}//x", "CLT013")],
)
def test_base_urls_of_a_client_without_v1(
    home: Path, server: str, capsys: pytest.CaptureFixture[str], base_url: str, code: str
) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": base_url.format(root=server)}}))
    claude = next(client for client in WRITTEN if client.name == "claude-code")
    assert code in check(claude, server, capsys)


def test_a_missing_v1_a_key_with_a_blank_and_a_proxy(
    home: Path, server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = next(client for client in WRITTEN if client.name == "codex")
    assert run(["connect", "codex", "--write", "--url", server]) == 0
    file = home / ".codex" / "config.toml"
    file.write_text(file.read_text().replace(f"{server}/v1", server))
    monkeypatch.setenv("TRIMTAB_API_KEY", f"{KEY} ")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    assert {"CLT011", "CLT003", "CLT030"} <= set(check(codex, server, capsys))
    monkeypatch.delenv("TRIMTAB_API_KEY")
    capsys.readouterr()
    assert run(["connect", "codex", "--check", "--url", server]) == 1
    assert "CLT001" in capsys.readouterr().out


def test_a_server_without_the_protocol_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(routes=("chat/completions",)) as root:
        assert run(["connect", "claude-code", "--url", root]) == 0
    assert "CON008" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["codxe"], "codex"),
        (["codex"], "--url"),
        (["codex", "--url", "http://127.0.0.1:9"], "doctor"),
        (["codex", "--url", "nonsense"], "http://HOST:PORT/v1"),
        (["codex", "--url", "{root}", "--model", "gone"], MODEL),
        (["codex", "--url", "{root}", "--key-env", "sk-a-key"], "--key-env"),
        (["codex", "--undo", "--write"], "exclude"),
        (["curl", "--url", "{root}", "--write"], "--print"),
        (["curl", "--check"], "doctor"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    words: list[str], said: str, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["connect", *(word.format(root=server) for word in words)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "sk-a-key" not in told
    assert "Traceback" not in told


def test_clients_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connect"]) == 0
    listed = capsys.readouterr().out
    assert all(client.name in listed for client in WRITTEN)
    assert run(["connect", "--json"]) == 0
    assert {one["name"] for one in json.loads(capsys.readouterr().out)["clients"]} >= {c.name for c in WRITTEN}


def test_an_mcp_server_at_the_models_port_is_told(home: Path, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    cline = next(client for client in WRITTEN if client.name == "cline")
    assert run(["connect", "cline", "--write", "--url", server]) == 0
    entered = {"mcpServers": {"wrong": {"url": f"{server}/v1"}, "right": {"url": "http://127.0.0.1:9"}, "other": 1}}
    files(cline, home)[0].with_name("cline_mcp_settings.json").write_text(json.dumps(entered))
    found = check(cline, server, capsys)
    assert set(found) == {"CON006"}
    assert "wrong" in found["CON006"]


def test_yaml_of_the_user_keeps_comments_and_order(home: Path, server: str) -> None:
    file = home / ".continue" / "config.yaml"
    file.parent.mkdir()
    mine = "# mine\nname: Own\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: other  # keep\n    provider: ollama\n"
    file.write_text(mine)
    assert run(["connect", "continue", "--write", "--url", server]) == 0
    assert file.read_text().startswith(mine)
    assert run(["connect", "continue", "--undo"]) == 0
    assert file.read_text() == mine


def test_what_a_client_changes_by_itself_does_not_stop_an_undo(home: Path, server: str) -> None:
    cline = next(client for client in WRITTEN if client.name == "cline")
    assert run(["connect", "cline", "--write", "--url", server]) == 0
    file = files(cline, home)[0]
    settings = json.loads(file.read_text())
    settings["providers"]["openai-compatible"]["updatedAt"] = "2030-01-01T00:00:00.000Z"
    file.write_text(json.dumps({**settings, "theme": "mine"}))
    assert run(["connect", "cline", "--undo"]) == 0
    assert json.loads(file.read_text()) == {"theme": "mine"}


def test_the_server_of_this_host_is_taken_by_itself(
    home: Path, server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRIMTAB_API_KEY")
    port = int(server.rsplit(":", 1)[1])
    record = ServerRecord(
        name="one", state=State.READY, pid=os.getpid(), pid_started=started_at(os.getpid()) or 0.0, boot=boot_id(),
        host="127.0.0.1", port=port, base_url=f"{server}/v1", models=(MODEL,), api_key=KEY, ready_after_s=1.0,
    )  # fmt: skip
    registry.write(home / "state" / "trimtab", record)
    assert run(["connect", "codex", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["base_url"], told["model"], told["context_tokens"]) == (f"{server}/v1", MODEL, CONTEXT)
    assert KEY not in json.dumps(told)
