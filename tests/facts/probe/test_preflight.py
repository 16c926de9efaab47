"""The probe of a host: on this one for real, and on trees of /proc and /sys that were written for the case."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.fakes.hub_server import Repo, serve_hub
from tests.fakes.nvml import Card, FakeNvml
from tests.supervisor.fake import wait_for
from trimtab.facts.host import HostRecord, Packages, Wanted
from trimtab.facts.probe.engine_packages import read_packages
from trimtab.facts.probe.gpus import GpuProcess, Gpus, read_gpus
from trimtab.facts.probe.hub_settings import Hub
from trimtab.facts.probe.hub_token import ask_about, read_token
from trimtab.facts.probe.places import look_at, pointers_in, weight_bytes
from trimtab.facts.probe.preflight import Asked, look
from trimtab.facts.probe.processes import Seen, left_over, see_processes
from trimtab.rules.preflight import preflight, recorded, written
from trimtab.rules.rule import Severity

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 4932307584\n"
GIB = 1 << 30


def seen(tmp_path: Path, found: Gpus | None = None, **more: object) -> HostRecord:
    asked = Asked(wanted=Wanted(), packages=Packages(), state=tmp_path, cache=tmp_path)
    return look(asked, found or read_gpus(FakeNvml()), **more)  # type: ignore[arg-type]


def test_this_host_for_real(tmp_path: Path) -> None:
    record = seen(tmp_path)
    assert record.memory.total_bytes > GIB
    assert record.processor.cores > 0
    assert "lo" in record.interfaces
    assert {disk.use for disk in record.disks} == {"models", "state", "temporary"}
    assert all(disk.writable for disk in record.disks)
    assert record.now == pytest.approx(time.time(), abs=60)
    assert recorded(written(record)) == record


def test_cards_with_who_holds_them(tmp_path: Path) -> None:
    card = Card("NVIDIA A10", 24 * GIB, 3 * GIB, (8, 6), processes=[(os.getpid(), 20 * GIB)])
    record = seen(tmp_path, read_gpus(FakeNvml([card])))
    (holder,) = record.cards[0].holders
    assert holder.pid == os.getpid()
    assert "python" in holder.command
    assert not holder.left_over


@pytest.mark.parametrize(
    ("number", "code"), [(12, "HST004"), (9, "HST004"), (4, "HST004"), (18, "HST005"), (999, "HST004")]
)
def test_a_driver_that_does_not_answer(tmp_path: Path, number: int, code: str) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    record = seen(tmp_path, read_gpus(FakeNvml(refuse={"start": number})), root=tmp_path)
    assert record.pci_gpus == 1
    assert code in [f.rule.code for f in preflight(record).findings]


def test_wsl_and_strict_memory_and_infiniband(tmp_path: Path) -> None:
    for name, text in {
        "proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2",
        "proc/sys/vm/overcommit_memory": "2\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/pids.max": "100\n",
        "sys/fs/cgroup/pids.current": "90\n",
        "sys/class/infiniband/mlx5_0/node_guid": "1\n",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    record = seen(tmp_path, root=tmp_path)
    assert record.wsl
    assert record.infiniband
    codes = [f.rule.code for f in preflight(record).findings]
    assert {"HST105", "HST404", "HST501"} <= set(codes)


def test_a_proxys_password_is_not_kept(tmp_path: Path) -> None:
    record = seen(tmp_path, environ={"http_proxy": "http://me:secret@proxy.example:3128", "OTHER": "x"})
    assert record.environ == {"http_proxy": "http://***@proxy.example:3128"}


def site(tmp_path: Path, *names: str, metadata: str = "") -> Path:
    ours = tmp_path / "vllm-0.20.0.dist-info"
    for name in (ours.name, *(f"{n}.dist-info" for n in names)):
        (tmp_path / name).mkdir()
    (ours / "METADATA").write_text(metadata)
    return ours


def test_packages_of_a_cuda_engine(tmp_path: Path) -> None:
    machine = platform.machine()
    metadata = (
        "Name: vllm\n"
        "Requires-Dist: transformers<5,>=4.56.0\n"
        'Requires-Dist: torch==2.9.0; platform_system == "Darwin"\n'
        'Requires-Dist: torch==1.0; extra == "old"\n'
        'Requires-Dist: torch==3.0; platform_machine == "vax"\n'
        f'Requires-Dist: torch==2.11.0; platform_machine == "{machine}" or platform_machine == "s390x"\n'
        "\nRequires-Dist: torch==9\n"
    )
    ours = site(tmp_path, "torch-2.10.0", "transformers-4.57.1", "nvidia_cuda_runtime_cu12-12.8.90", metadata=metadata)
    found = read_packages(ours, vllm="0.20.0", python=Path("/opt/python"), on_cpu=False)
    assert (found.torch, found.transformers, found.cuda) == ("2.10.0", "4.57.1", (12, 8))
    assert found.wants == {"transformers": "<5,>=4.56.0", "torch": "==2.11.0"}
    codes = [f.rule.code for f in preflight(HostRecord(packages=found)).findings]
    assert codes == ["HST505"]


@pytest.mark.parametrize(("torch", "severity"), [("2.11.1+cu130", Severity.WARNING), ("2.9.1", Severity.ERROR)])
def test_a_torch_that_differs_in_its_last_number_does_not_stop_a_start(torch: str, severity: Severity) -> None:
    packages = Packages(vllm="0.20.0", torch=torch, wants={"torch": "==2.11.0"})
    (found,) = preflight(HostRecord(packages=packages)).findings
    assert (found.rule.code, found.severity) == ("HST505", severity)


@pytest.mark.parametrize(
    ("value", "severity"), [("1", Severity.WARNING), ("true", Severity.WARNING), ("0", Severity.ERROR)]
)
def test_a_driver_behind_forward_compatibility_libraries_does_not_stop_a_start(value: str, severity: Severity) -> None:
    record = HostRecord(
        packages=Packages(torch="2.11.0", cuda=(13, 0)),
        cuda=(12, 8),
        driver="570.86",
        environ={"VLLM_ENABLE_CUDA_COMPATIBILITY": value},
        wanted=Wanted(on_cpu=False),
    )
    found = [f for f in preflight(record).findings if f.rule.code == "HST003"]
    assert [f.severity for f in found] == [severity]


@pytest.mark.parametrize(("torch", "cuda"), [("2.9.1+cu128", (12, 8)), ("2.9.1+cpu", None), ("2.9.1", None)])
def test_cuda_by_torchs_local_version(tmp_path: Path, torch: str, cuda: tuple[int, int] | None) -> None:
    found = read_packages(site(tmp_path, f"torch-{torch}"), vllm="0.20.0", python=None, on_cpu=False)
    assert found.cuda == cuda
    assert found.on_cpu == torch.endswith("cpu")


def test_no_metadata_no_versions(tmp_path: Path) -> None:
    assert read_packages(None, vllm="0.20.0", python=None, on_cpu=False).torch is None
    assert read_packages(tmp_path / "gone", vllm="0.20.0", python=None, on_cpu=False).torch is None


def test_an_orphaned_engine_core_for_real() -> None:
    orphan = "(exec -a VLLM::EngineCore sleep 60) >/dev/null 2>&1 & echo $!"
    started = subprocess.run(["bash", "-c", orphan], stdout=subprocess.PIPE, text=True, check=True, timeout=20)
    pid = int(started.stdout.split()[0])
    try:
        wait_for(lambda: psutil.Process(pid).cmdline()[:1] == ["VLLM::EngineCore"])
        parent = psutil.Process(psutil.Process(pid).ppid())
        look = see_processes()
        found = [holder.pid for holder in left_over(look, [GpuProcess(pid, GIB)], {})]
        assert (pid in found) == ("python" not in " ".join(parent.cmdline()))
        assert pid not in [holder.pid for holder in left_over(look, [], {os.getsid(pid): "mine"})]
    finally:
        psutil.Process(pid).kill()


@pytest.mark.parametrize(
    ("parent", "left"),
    [
        ("/sbin/init", True),
        ("/usr/lib/systemd/systemd --user", True),
        ("/usr/bin/python3 /usr/local/bin/vllm serve m", False),
        ("VLLM::EngineCore", False),
        ("python my_script.py", False),
        ("ray::RayWorkerWrapper", False),
    ],
)
def test_left_over_is_told_by_the_parent(parent: str, left: bool) -> None:
    look = Seen({1: parent, 7: "VLLM::Worker_TP1"}, {7: 1, 1: 0}, 2)
    assert bool(left_over(look, [], {})) is left


def test_an_unnamed_child_counts_where_it_holds_a_card() -> None:
    look = Seen({1: "init", 7: "python -c from multiprocessing.spawn import spawn_main"}, {7: 1, 1: 0}, 2)
    assert left_over(look, [], {}) == ()
    assert left_over(look, [GpuProcess(7, GIB)], {})[0].used_bytes == GIB


def test_places(tmp_path: Path) -> None:
    assert look_at("state", tmp_path / "a" / "b").writable
    (tmp_path / "file").touch()
    assert look_at("state", tmp_path / "file" / "below").reason == os.strerror(20)
    assert look_at("state", Path("/proc/1/nothing")).path == "/proc/1/nothing"


def test_the_filesystem_of_the_nearest_mount(tmp_path: Path) -> None:
    place = tmp_path / "mnt" / "models"
    place.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(
        f"disk / ext4 rw 0 0\nserver:/x {place.resolve()} nfs4 rw 0 0\nother /mnt/models2 cifs rw 0 0\nodd\n"
    )
    assert look_at("weights", place, tmp_path).filesystem == "nfs4"


def test_lfs_pointers(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text(POINTER)
    (tmp_path / "tokenizer.json").write_text(POINTER)
    (tmp_path / "config.json").write_text("{}")
    assert pointers_in(tmp_path) == ("model.safetensors", "tokenizer.json")
    assert weight_bytes(tmp_path) == len(POINTER)
    assert pointers_in(tmp_path / "gone") == ()
    assert weight_bytes(tmp_path / "gone") is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hf_" + "a" * 34, None),
        ("hf_" + "a" * 34 + "\n", None),
        ("'hf_" + "a" * 34 + "'", "HST206"),
        ("hf_aaaa bbbb", "HST206"),
        ("sk-123", "HST206"),
    ],
)
def test_a_token_is_judged_by_its_shape(text: str, code: str | None) -> None:
    token = read_token({"HF_TOKEN": text})
    assert token is not None
    assert text.strip() not in str(token)
    codes = [f.rule.code for f in preflight(HostRecord(token=token)).findings]
    assert codes == ([code] if code else [])


def test_a_token_in_the_file_of_a_login(tmp_path: Path) -> None:
    assert read_token({"HF_HOME": str(tmp_path)}) is None
    (tmp_path / "token").write_text("hf_" + "b" * 34 + "\n")
    token = read_token({"HF_HOME": str(tmp_path)})
    assert token is not None
    assert token.found == str(tmp_path / "token")
    assert not token.has_blank


def test_a_hub_that_does_not_answer_tells_nothing(tmp_path: Path) -> None:
    about = ask_about("org/model", Hub(cache=tmp_path, endpoint="http://127.0.0.1:9"))
    assert (about.gated, about.size_bytes) == (None, None)


def test_the_hub_is_asked_whether_a_model_is_gated_and_how_large(tmp_path: Path) -> None:
    with serve_hub() as hub:
        hub.repos["org/model"] = Repo({"config.json": b"{}", "model.safetensors": b"x" * 9000}, gated=True)
        about = ask_about("org/model", Hub(cache=tmp_path, endpoint=hub.endpoint))
    assert about.gated is True
    assert about.size_bytes is not None
    assert about.size_bytes >= 9000
    wanted = Wanted(model="org/model", from_hub=True, cached=False, gated=about.gated)
    assert [f.rule.code for f in preflight(HostRecord(wanted=wanted)).findings] == ["HST209"]
