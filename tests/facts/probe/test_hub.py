"""Downloads from a hub on a real socket: what is fetched, what is kept, and what each failure says."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.fakes.hub_server import COMMIT, FakeHub, Repo, serve_hub
from trimtab.errors import HostError, ModelError, TrimtabError, UpstreamError, UsageError
from trimtab.facts.probe.hub import fetch, fetch_config
from trimtab.facts.probe.hub_settings import Hub, hub_from_environment, is_model_id
from trimtab.facts.probe.transfer import Progress
from trimtab.messages import Message

ID = "acme/tiny-1b"
WEIGHTS = {f"model-0000{n}-of-00002.safetensors": bytes([n]) * 300_000 for n in (1, 2)}
INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors.index.json": INDEX.encode(),
    **WEIGHTS,
    "pytorch_model.bin": b"p" * 5000,
    "consolidated.safetensors": b"c" * 5000,
    "onnx/model.onnx": b"o" * 5000,
    "README.md": b"# card",
}


@dataclass
class Watcher:
    seen: list[Progress] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def moved(self, progress: Progress) -> None:
        self.seen.append(progress)

    def noted(self, note: Message) -> None:
        self.notes.append(str(note))


@pytest.fixture
def server() -> Iterator[FakeHub]:
    with serve_hub() as found:
        found.repos[ID] = Repo(dict(FILES))
        yield found


@pytest.fixture
def hub(server: FakeHub, tmp_path: Path) -> Hub:
    return Hub(cache=tmp_path / "hub", endpoint=server.endpoint, token="")


def failure(model_id: str, hub: Hub, kind: type[TrimtabError]) -> str:
    with pytest.raises(kind) as caught:
        fetch(model_id, hub, Watcher())
    return f"{caught.value.message} -> {caught.value.hint}"


def parts(hub: Hub) -> list[Path]:
    return [p for p in hub.cache.rglob("*.trimtab.part") if p.stat().st_size]


def test_brings_only_what_vllm_needs(server: FakeHub, hub: Hub) -> None:
    watcher = Watcher()
    found = fetch(ID, hub, watcher)
    wanted = {"config.json", "tokenizer.json", "model.safetensors.index.json", *WEIGHTS}
    assert {p.name for p in found.iterdir()} == wanted
    assert all((found / name).read_bytes() == FILES[name] for name in wanted)
    assert watcher.seen[-1].done_bytes == watcher.seen[-1].total_bytes == sum(len(FILES[n]) for n in wanted)
    assert not watcher.notes


def test_second_time_moves_nothing(server: FakeHub, hub: Hub) -> None:
    first = fetch(ID, hub, Watcher())
    server.requests.clear()
    assert fetch(ID, hub, Watcher()) == first
    assert [r.path.split("?")[0] for r in server.requests] == [f"/api/models/{ID}/revision/main"]


def test_the_hubs_own_client_finds_it(hub: Hub) -> None:
    from huggingface_hub import snapshot_download

    found = fetch(ID, hub, Watcher())
    assert snapshot_download(ID, cache_dir=hub.cache, local_files_only=True) == str(found)


def test_config_alone(server: FakeHub, hub: Hub) -> None:
    found = fetch_config(ID, hub, Watcher())
    assert {p.name for p in found.iterdir()} == {"config.json", "model.safetensors.index.json"}
    assert not server.gets("/cdn/")


def test_token_goes_to_the_hub_and_not_to_its_cdn(server: FakeHub, hub: Hub) -> None:
    server.valid_tokens.add("hf_good")
    server.repos[ID].gated, server.repos[ID].granted = True, {"hf_good"}
    fetch(ID, replace(hub, token="hf_good"), Watcher())
    assert {r.token for r in server.requests if r.path.startswith("/cdn/")} == {None}
    assert {r.token for r in server.requests if not r.path.startswith("/cdn/")} == {"hf_good"}


def test_cut_transfer_goes_on_where_it_stopped(server: FakeHub, hub: Hub) -> None:
    server.repos[ID] = Repo({"config.json": b"{}", "model.safetensors": os.urandom(1_500_000)})
    server.cuts = [600_000, 700_000]
    found = fetch(ID, hub, Watcher())
    assert (found / "model.safetensors").read_bytes() == server.repos[ID].files["model.safetensors"]
    assert [r.range for r in server.gets("/cdn/")] == [None, "bytes=524288-", "bytes=1048576-"]


def test_next_run_takes_up_the_part_that_came(server: FakeHub, hub: Hub) -> None:
    data = os.urandom(500_000)
    server.repos[ID] = Repo({"config.json": b"{}", "model.safetensors": data})
    blob = hub.cache / "models--acme--tiny-1b/blobs" / server.repos[ID].etag("model.safetensors")
    blob.parent.mkdir(parents=True)
    blob.with_name(blob.name + ".trimtab.part").write_bytes(data[:123_456])
    watcher = Watcher()
    found = fetch(ID, hub, watcher)
    assert (found / "model.safetensors").read_bytes() == data
    assert [r.range for r in server.gets("/cdn/")] == ["bytes=123456-"]
    assert not parts(hub)


@pytest.mark.parametrize("old", [b"x" * 1000, b"x" * 500_000, b"x" * 600_000], ids=["short", "full", "long"])
@pytest.mark.parametrize("ignore_ranges", [False, True])
def test_a_damaged_part_is_found_out(server: FakeHub, hub: Hub, old: bytes, ignore_ranges: bool) -> None:
    data = os.urandom(500_000)
    server.repos[ID] = Repo({"config.json": b"{}", "model.safetensors": data})
    server.ignore_ranges = ignore_ranges
    blob = hub.cache / "models--acme--tiny-1b/blobs" / server.repos[ID].etag("model.safetensors")
    blob.parent.mkdir(parents=True)
    blob.with_name(blob.name + ".trimtab.part").write_bytes(old)
    assert (fetch(ID, hub, Watcher()) / "model.safetensors").read_bytes() == data


def test_gated_and_not_logged_in(server: FakeHub, hub: Hub) -> None:
    server.repos[ID].gated = True
    said = failure(ID, hub, ModelError)
    assert "is gated, and you are not logged in" in said
    assert f"{server.endpoint}/{ID}" in said
    assert "HF_TOKEN" in said
    assert not server.gets("/cdn/")


def test_gated_and_not_let_in(server: FakeHub, hub: Hub) -> None:
    server.repos[ID].gated = True
    server.valid_tokens.add("hf_other")
    assert "your token's account has not been let in" in failure(ID, replace(hub, token="hf_other"), ModelError)


def test_token_refused(hub: Hub) -> None:
    assert "does not accept your token (401)" in failure(ID, replace(hub, token="hf_bad"), UsageError)


@pytest.mark.parametrize("token", ["", "hf_good"])
def test_missing_and_misspelt(server: FakeHub, hub: Hub, token: str) -> None:
    server.valid_tokens.add("hf_good")
    hub = replace(hub, token=token, known_ids=("Qwen/Qwen2.5-7B-Instruct",))
    assert "has no model zzz/yyy" in failure("zzz/yyy", hub, ModelError)
    assert "Check the spelling" in failure("zzz/yyy", hub, ModelError)
    assert f"Did you mean {ID}?" in failure("acme/tiny1b", hub, ModelError)
    assert "Did you mean Qwen/Qwen2.5-7B-Instruct?" in failure("qwen/Qwen-2.5-7B-instruct", hub, ModelError)
    assert "Did you mean Qwen/Qwen2.5-7B-Instruct?" in failure("Qwen2.5-7B-Instruct", hub, ModelError)


def test_the_catalogue_knows_the_popular_ones(hub: Hub) -> None:
    assert "Did you mean Qwen/Qwen2.5-72B-Instruct" in failure("Qwen/Qwen2.5-72B-Instuct", hub, ModelError)


def test_private_is_as_missing(server: FakeHub, hub: Hub) -> None:
    server.repos[ID].private = True
    assert "or it is private" in failure(ID, hub, ModelError)


def test_unknown_revision(hub: Hub) -> None:
    with pytest.raises(ModelError, match="has no revision v9"):
        fetch(ID, hub, Watcher(), revision="v9")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"README.md": b"x"}, "holds no weights"),
        ({}, "it holds nothing"),
        ({"m-Q4.gguf": b"x"}, "GGUF files alone"),
        ({"adapter_config.json": b"{}"}, "is a LoRA adapter"),
        ({"config.json": b"{}", "optimizer.bin": b"x", "training_args.bin": b"x"}, "holds no weights"),
    ],
)
def test_without_weights(server: FakeHub, hub: Hub, files: dict[str, bytes], said: str) -> None:
    server.repos[ID] = Repo(files)
    assert said in failure(ID, hub, ModelError)


def test_no_network(hub: Hub) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        said = failure(ID, replace(hub, endpoint=f"http://127.0.0.1:{taken.getsockname()[1]}"), HostError)
    assert "cannot reach http://127.0.0.1:" in said
    assert "HF_ENDPOINT" in said


def test_no_network_but_in_the_cache(server: FakeHub, hub: Hub) -> None:
    first = fetch(ID, hub, Watcher())
    watcher = Watcher()
    server.fail_all = 503
    assert fetch(ID, hub, watcher) == first
    assert "using the copy in the cache" in watcher.notes[0]
    (first / "model-00002-of-00002.safetensors").unlink()
    assert "failed with 503" in failure(ID, hub, UpstreamError)


def test_offline(server: FakeHub, hub: Hub) -> None:
    offline = replace(hub, offline=True)
    assert "is not in the cache" in failure(ID, offline, ModelError)
    first = fetch(ID, hub, Watcher())
    server.requests.clear()
    assert fetch(ID, offline, Watcher()) == first
    assert not server.requests


def test_config_in_the_cache_is_not_the_model(hub: Hub) -> None:
    fetch_config(ID, hub, Watcher())
    offline = replace(hub, offline=True)
    assert fetch_config(ID, offline, Watcher()).name == COMMIT
    assert "or not whole" in failure(ID, offline, ModelError)


@pytest.mark.parametrize(("status", "said"), [(429, "refuses more requests"), (500, "failed with 500")])
def test_mirror_in_trouble(server: FakeHub, hub: Hub, status: int, said: str) -> None:
    server.fail_all = status
    assert said in failure(ID, hub, UpstreamError)


def test_disk_too_small(server: FakeHub, hub: Hub) -> None:
    small = replace(hub, free_bytes=lambda _: 100_000)
    said = failure(ID, small, HostError)
    assert "needs 0.57 MiB more on disk; 0.10 MiB are free" in said
    assert str(hub.cache) in said
    assert not server.gets("/resolve/")


@pytest.mark.parametrize("text", ["a b", "../x", "a/b/c", "", "http://x/y", "a--b/c", "-x/y"])
def test_not_an_id(hub: Hub, text: str) -> None:
    assert not is_model_id(text)
    assert "is not a model id" in failure(text, hub, ModelError)


def test_environment() -> None:
    home = os.path.expanduser("~")
    assert hub_from_environment({}).cache == Path(home, ".cache/huggingface/hub")
    assert hub_from_environment({"XDG_CACHE_HOME": "/c"}).cache == Path("/c/huggingface/hub")
    assert hub_from_environment({"HF_HOME": "/h"}).cache == Path("/h/hub")
    found = hub_from_environment(
        {"HF_HOME": "/h", "HF_HUB_CACHE": "/k", "HF_ENDPOINT": "http://m/", "HF_TOKEN": "t", "HF_HUB_OFFLINE": "1",
         "VLLM_USE_MODELSCOPE": "True"}
    )  # fmt: skip
    assert (found.cache, found.endpoint, found.token) == (Path("/k"), "http://m", "t")
    assert found.offline
    assert found.modelscope


def test_what_answers_is_no_hub(server: FakeHub, hub: Hub) -> None:
    """A login page or another service answers 200 in words of its own."""
    server.fail_all = 200
    assert f"{hub.endpoint} does not answer as a hub" in failure(ID, hub, UpstreamError)
    assert not hub.cache.exists()


def test_without_a_configuration(server: FakeHub, hub: Hub) -> None:
    server.repos[ID] = Repo({name: data for name, data in FILES.items() if name != "config.json"})
    assert f"{ID} holds no config.json; it holds .bin, .json, .md, .onnx, .safetensors" in failure(ID, hub, ModelError)
    server.repos[ID] = Repo({"adapter_config.json": b"{}"})
    with pytest.raises(ModelError, match="is a LoRA adapter"):
        fetch_config(ID, hub, Watcher())
    assert not hub.cache.exists()


def test_an_id_is_not_suggested_for_itself(hub: Hub) -> None:
    known = replace(hub, known_ids=["acme/elsewhere-7b", "acme/elsewhere-8b"])
    said = failure("acme/elsewhere-7b", known, ModelError)
    assert "has no model acme/elsewhere-7b" in said
    assert "Did you mean acme/elsewhere-8b?" in said


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:99", "ftp://x", "http://127.0.0.1:99999", "http://[::1", " ", "http://"]
)
def test_an_endpoint_that_is_none(hub: Hub, endpoint: str) -> None:
    assert f"HF_ENDPOINT is {endpoint!r}" in failure(ID, replace(hub, endpoint=endpoint), UsageError)


@pytest.mark.parametrize("token", ["hf_a b", "hf_a\n", "ключ"])
def test_a_token_that_is_none(server: FakeHub, hub: Hub, token: str) -> None:
    said = failure(ID, replace(hub, token=token), UsageError)
    assert "HF_TOKEN holds a blank" in said
    assert token not in said
    assert not server.requests
