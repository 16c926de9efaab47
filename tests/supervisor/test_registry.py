"""Claims: names, ports and cards; records others may read; directories that cannot be written."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from trimtab.engine.registry import public, without_secrets
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.supervisor import registry
from trimtab.supervisor.devices import Card, choose_devices
from trimtab.supervisor.ports import free_port, require_free
from trimtab.supervisor.registry import Wish

CARDS = [Card("0", 10.0), Card("1", 70.0), Card("2", 79.0), Card("3", 40.0)]


def test_names_come_from_the_model_and_are_unique(tmp_path: Path) -> None:
    names = [registry.claim(tmp_path, Wish("Qwen/Qwen2.5-7B-Instruct")).name for _ in range(3)]
    assert names == ["qwen2.5-7b-instruct", "qwen2.5-7b-instruct-2", "qwen2.5-7b-instruct-3"]
    ports = [record.port for record in registry.live(tmp_path)]
    assert len(set(ports)) == 3


@pytest.mark.parametrize("name", ["../x", "", "a/b", "-x", "x" * 64, "a b"])
def test_bad_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is no server name"):
        registry.claim(tmp_path, Wish("m", name=name))


def test_a_taken_port_names_its_holder(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(HostError, match=f"port {port} on 127.0.0.1 is taken by process {os.getpid()}: ") as caught:
            registry.claim(tmp_path, Wish("m", port=port))
        assert "--port" in str(caught.value.hint)
        assert free_port("127.0.0.1", first=port) > port
    require_free("127.0.0.1", port)


def test_a_port_that_another_process_is_about_to_take_is_passed_by() -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        first = found.getsockname()[1]
    looks = f"print(free_port('127.0.0.1', first={first}), flush=True)"
    code = f"from trimtab.supervisor.ports import free_port; {looks}; input()"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        assert free_port("127.0.0.1", first=theirs) > theirs
        other.communicate("\n")
    assert free_port("127.0.0.1", first=theirs) == theirs


def test_a_claim_that_never_starts_ends_with_its_block(tmp_path: Path) -> None:
    with pytest.raises(HostError), registry.claimed(tmp_path, Wish("m")):
        raise HostError(msg("no disk"))
    record = registry.find(tmp_path, "m")
    assert (record.state, record.reason) == ("failed_to_start", "no disk")
    with pytest.raises(KeyboardInterrupt), registry.claimed(tmp_path, Wish("m")):
        raise KeyboardInterrupt
    assert registry.find(tmp_path, "m").state == "stopped"
    assert registry.live(tmp_path) == []


def test_records_are_for_their_owner_and_show_no_key(tmp_path: Path) -> None:
    record = registry.claim(tmp_path, Wish("m", api_key="s3cret"))
    file = registry.directory(tmp_path, "m") / "server.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = registry.read(tmp_path, "m")
    assert found == record
    assert "s3cret" not in str(public(msgspec.structs.replace(record, argv=("vllm", "--api-key", "s3cret"))))


def test_secrets_in_argv() -> None:
    argv = ("vllm", "serve", "m", "--api-key", "a", "b", "--port", "1", "--api-key=c", "--hf-token=d")
    assert without_secrets(argv) == [
        "vllm", "serve", "m", "--api-key", "***", "***", "--port", "1", "--api-key=***", "--hf-token=***",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"name": "m"}', "missing required field"),
        ("[]", "Expected `object`"),
        ('{"name": "m", "state": "ready", "pid": 1, "pid_started": 0, "host": "h", "port": 1, "base_url": "u", '
         '"schema": "trimtab.server/2"}', "schema trimtab.server/2, not trimtab.server/1"),
    ],
)  # fmt: skip
def test_a_record_of_another_version_is_still_a_server(tmp_path: Path, text: str, why: str) -> None:
    home = registry.directory(tmp_path, "m")
    home.mkdir(parents=True)
    (home / "server.json").write_text(text)
    refused = f"the record of the server m is of another version of Trimtab: .*{re.escape(why)}"
    for look in (lambda: registry.find(tmp_path, "m"), lambda: registry.claim(tmp_path, Wish("x", name="m")),
                 lambda: registry.require_readable(tmp_path, "m")):  # fmt: skip
        with pytest.raises(HostError, match=refused) as error:
            look()
        assert str(home) in str(error.value.hint)
    assert registry.claim(tmp_path, Wish("m")).name == "m-2"
    assert registry.records(tmp_path)[0].name == "m-2"
    registry.require_readable(tmp_path, "nobody")


def test_a_record_that_is_no_json_is_no_server(tmp_path: Path) -> None:
    registry.claim(tmp_path, Wish("m"))
    (registry.directory(tmp_path, "m") / "server.json").write_text("{")
    assert registry.records(tmp_path) == []
    assert registry.claim(tmp_path, Wish("m")).name == "m"


def test_a_state_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(HostError, match=r"cannot write to .*state/servers"):
        registry.claim(tmp_path / "state", Wish("m"))


def test_servers_do_not_share_cards(tmp_path: Path) -> None:
    def two(claimed: Mapping[str, str]) -> tuple[str, ...]:
        return choose_devices(CARDS, 2, claimed)

    assert registry.claim(tmp_path, Wish("a", choose=two)).devices == ("1", "2")
    assert registry.claim(tmp_path, Wish("b", choose=two)).devices == ("0", "3")
    assert registry.claimed_devices(tmp_path) == {"0": "b", "3": "b", "1": "a", "2": "a"}
    with pytest.raises(HostError, match=r"needs 2 cards, 0 of 4 are free; in use: "):
        registry.claim(tmp_path, Wish("c", choose=two))
    with pytest.raises(HostError, match="card 1 is used by the server a"):
        choose_devices(CARDS, 1, registry.claimed_devices(tmp_path), wanted=["1"])
    assert choose_devices(CARDS, 2, registry.claimed_devices(tmp_path), share=True) == ("1", "2")
    assert choose_devices(CARDS, 1, registry.claimed_devices(tmp_path), wanted=["1"], share=True) == ("1",)
    with pytest.raises(HostError, match="no card 9 here; there are: 0, 1, 2, 3"):
        choose_devices(CARDS, 1, {}, wanted=["9"])


def test_equal_cards_are_taken_in_order() -> None:
    assert choose_devices([Card("0", 5.0), Card("1", 5.0)], 1, {}) == ("0",)


def test_addresses_by_which_this_host_reaches_a_server() -> None:
    assert [registry.reachable(host) for host in ("0.0.0.0", "::", "::1", "10.0.0.1")] == [
        "127.0.0.1", "[::1]", "[::1]", "10.0.0.1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "count", "said"),
    [(["0", "0"], 1, "names a card twice"), (["0"], 2, "needs 2 cards; --devices names 1")],
)
def test_named_cards_that_will_not_do(wanted: list[str], count: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose_devices(CARDS, count, {}, wanted=wanted)


def test_an_address_that_is_not_of_this_host(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"nothing can listen on '192\.0\.2\.1' here"):
        registry.claim(tmp_path, Wish("m", host="192.0.2.1"))
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_full_of_other_things(tmp_path: Path) -> None:
    mine = registry.claim(tmp_path, Wish("m", name="mine"))
    servers = tmp_path / "servers"
    whole = (servers / "mine" / registry.RECORD).read_bytes()
    for name, text in {"we ird": whole, "copy": whole, "list": b"[]", "empty": b"", "torn": whole[:40]}.items():
        (servers / name).mkdir()
        (servers / name / registry.RECORD).write_bytes(text)
    (servers / "folder" / registry.RECORD).mkdir(parents=True)
    (servers / "pipe").mkdir()
    os.mkfifo(servers / "pipe" / registry.RECORD)
    (servers / "file").touch()
    (servers / "loop").symlink_to("loop")
    assert registry.records(tmp_path) == [mine]
    assert registry.claim(tmp_path, Wish("m", name="torn")).name == "torn"


@pytest.mark.parametrize("taken", ["file", "file/server.json/x"])
def test_a_place_that_cannot_be_written_leaves_nothing(tmp_path: Path, taken: str) -> None:
    place = tmp_path / "servers" / taken
    place.parent.mkdir(parents=True)
    place.touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(HostError, match=r"cannot write to .*/file"):
        registry.claim(tmp_path, Wish("m", name="file"))
    assert [p for p in sorted(tmp_path.rglob("*")) if p.name != ".lock"] == before
