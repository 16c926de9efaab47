"""What is wrong with the host: variables, limits, disks, permissions."""

from __future__ import annotations

import os
import resource

import models as m
from case import in_cgroup, in_pids_cgroup, limit, serve

NO_KV_SPACE = {"VLLM_CPU_KVCACHE_SPACE": "UNSET"}  # it is stronger than --kv-cache-memory-bytes

HOST = (
    serve("env-value", "variable-invalid", "a word for a number", env={"VLLM_CPU_KVCACHE_SPACE": "lots"}),
    serve(
        "env-choice",
        "variable-invalid",
        "a value that is none of the choices",
        env={"VLLM_WORKER_MULTIPROC_METHOD": "thread"},
    ),
    serve("env-log-level", "variable-invalid", "a log level that does not exist", env={"VLLM_LOGGING_LEVEL": "LOUD"}),
    serve("env-threads", "cpu-binding-wrong", "a core that is not there", env={"VLLM_CPU_OMP_THREADS_BIND": "512-515"}),
    serve(
        "env-port", "variable-invalid", "the address of a Kubernetes service", env={"VLLM_PORT": "tcp://10.0.0.1:8000"}
    ),
    serve("no-openmp", "shared-library-missing", "without Intel's OpenMP", env={"LD_PRELOAD": "UNSET"}),
    serve("kv-too-large", "cpu-kv-space-wrong", "more KV space than memory", env={"VLLM_CPU_KVCACHE_SPACE": "500"}),
    serve(
        "kv-too-small",
        "kv-too-small-for-context",
        "KV space for less than one request",
        "--kv-cache-memory-bytes",
        "4M",
        "--max-model-len",
        "8192",
        env=NO_KV_SPACE,
    ),
    serve("kv-none", "no-kv-blocks", "KV space for not one block", "--kv-cache-memory-bytes", "1K", env=NO_KV_SPACE),
    serve("files-few", "process-limit-too-low", "a limit of 64 open files", before=limit(resource.RLIMIT_NOFILE, 64)),
    serve(
        "processes-few",
        "segfault",
        "a limit of 40 processes: the worker aborts, and its log tells no more",
        before=in_pids_cgroup(40),
    ),
    serve("address-space", "oom-host-ram", "3 GiB of address space", before=limit(resource.RLIMIT_AS, 3 << 30)),
    serve(
        "memory-cgroup",
        "killed-by-kernel",
        "a control group of 1,200 MiB: the log tells nothing of it",
        before=in_cgroup(1200),
    ),
    serve(
        "memory-cgroup-small",
        "killed-by-kernel",
        "a control group of 500 MiB: the log ends at once",
        before=in_cgroup(500),
    ),
    serve("shm-small", "shm-too-small", "/dev/shm of 64 KiB", shell="mount -t tmpfs -o size=64k none /dev/shm"),
    serve("shm-absent", "shm-too-small", "/dev/shm read-only", shell="mount -t tmpfs -o ro none /dev/shm"),
    serve(
        "tmp-full",
        "",
        "TMPDIR on a full disk: Python takes /tmp instead, and all is well",
        healthy=True,
        env={"TMPDIR": "/mnt"},
        shell="mount -t tmpfs -o size=64k none /mnt; head -c 100000 /dev/zero > /mnt/full 2>/dev/null; true",
    ),
    serve(
        "cache-full",
        "disk-full",
        "a hub cache on a full disk, into which a model's own code is copied",
        "--trust-remote-code",
        env={"HF_HOME": "/mnt"},
        shell="mount -t tmpfs -o size=64k none /mnt; head -c 100000 /dev/zero > /mnt/full 2>/dev/null; true",
        prepare=m.both(
            m.text("config_own.py", "from transformers import LlamaConfig\n\n\nclass Own(LlamaConfig):\n    pass\n"),
            m.edit(model_type="own", auto_map={"AutoConfig": "config_own.Own"}),
        ),
    ),
    serve(
        "cache-readonly",
        "cache-not-writable",
        "a cache that cannot be written",
        nobody=True,
        prepare=lambda model: (model.parent / "home").mkdir(0o555),
    ),
    serve(
        "model-permission",
        "weights-incomplete",
        "weights of another user",
        nobody=True,
        prepare=lambda model: os.chmod(m.own(model, "model.safetensors"), 0),
    ),
    serve(
        "user-unknown",
        "",
        "a user id without a name: an engine without compilation asks for none",
        healthy=True,
        shell="mount --bind /dev/null /etc/passwd",
        env={"HOME": "UNSET", "USER": "UNSET"},
    ),
    serve(
        "prometheus-directory",
        "cache-not-writable",
        "a metrics directory that is not there",
        "--api-server-count",
        "2",
        env={"PROMETHEUS_MULTIPROC_DIR": "/srv/absent"},
    ),
)
