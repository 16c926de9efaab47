"""Planted secrets of many shapes: none survives; what is no secret does; redacting twice changes nothing."""

from __future__ import annotations

import json
import time

import pytest

from trimtab.engine.redaction import Private, hide_secrets, redact

S = "S3cretValue0123456789abcdef"  # stands for the secret in each line
PLANTED = [
    f"VLLM_API_KEY={S}", f"export HF_TOKEN={S}", f'HF_TOKEN="{S}"', f"HUGGING_FACE_HUB_TOKEN='{S}'",
    f"HUGGINGFACE_HUB_CACHE_TOKEN={S}", f"HF_HOME=/data/{S}", f"--api-key {S}", f"--api-key={S}", f"--hf-token {S}",
    f"--hf-token={S} --port 8000", f"['vllm', 'serve', 'm', '--api-key', '{S}', '--port', '8000']",
    f"non-default args: {{'model': 'm', 'api_key': ['{S}'], 'port': 8000}}",
    f"non-default args: {{'api_key': ['{S}', '{S}x'], 'max_model_len': 4096}}", f"api_key='{S}'",
    f'{{"api_key": "{S}", "model": "m"}}', f'{{"apiKey": "{S}"}}', f"api-key: {S}", f"x-api-key: {S}",
    f"X-API-Key: {S}\r\nAccept: */*", f"Authorization: Bearer {S}", f"authorization: Basic {S}==",
    f"-H 'Authorization: Bearer {S}'", f"{{'authorization': 'Bearer {S}'}}", f'"Authorization": "Bearer {S}"',
    f"Authorization: {S}", f"('Authorization', 'Bearer {S}')", f"Proxy-Authorization: Basic {S}", f"sent Bearer {S} to",
    f"Cookie: session={S}; other=1", f"Set-Cookie: sid={S}", f"https://me:{S}@hub.example.org/simple",
    f"http://{S}@proxy.example.org:3128", f"https_proxy=http://user:{S}@10.1.2.3:8080",
    f"postgres://app:{S}@db/usage", f"GET /v1/models?api_key={S}&n=1", f"https://x.example/f?token={S}",
    f"https://b.example/f?X-Amz-Signature={S}&X-Amz-Credential={S}", f"https://a.example/f?sv=2020&sig={S}",
    f"AWS_SECRET_ACCESS_KEY={S}", f"aws_secret_access_key = {S}", f"AWS_SESSION_TOKEN={S}", f"password: {S}",
    f"PASSWORD={S}", f"passwd={S}", f"db_password='{S}'", f"client_secret={S}", f'"client_secret":"{S}"',
    f"auth_token={S}", f"access_token: {S}", f'"refresh_token": "{S}"', f"token={S}", f'"token": "{S}"',
    f"GITHUB_TOKEN={S}", f"WANDB_API_KEY={S}", f"MODELSCOPE_API_TOKEN={S}", f"MY_SERVICE_KEY={S}",
    f"DefaultEndpointsProtocol=https;AccountKey={S};", f"private_key={S}", f"ssh passphrase={S}",
    f"hf_{S}", f"key hf_{S} was refused", f"sk-{S}", f"sk-proj-{S}", f"ghp_{S}", f"github_pat_{S}", f"glpat-{S}",
    f"nvapi-{S}", f"xoxb-{S}", "AKIAS3CRETVALUE01234", f"AIza{S}0123456", f"eyJhbGciOiJI.{S}.{S}", f"ya29.{S}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{S}\n{S}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{S}\n(cut off", f"sk_live_{S}",
    f"{{'secret_key': '{S}'}}", f"Private-Token: {S}", f"DEPLOY_TOKEN={S}", f"secret_access_key: {S}",
    f"https://hooks.slack.com/services/T00000000/B00000000/{S}", f"https://discord.com/api/webhooks/123456/{S}",
    f"https://api.telegram.org/bot123456789:{S}/sendMessage", f"https://x.webhook.office.com/webhookb2/{S}@{S}/y",
    f"ValueError: SECRET {S}", f"the password {S} was refused", f"API key {S} is not valid", f"HF_TOKEN {S}",
    f"Incorrect API key provided: {S}", f"the secret is '{S}'", f"token {S} expired", f"ENV API_KEY {S}",
    f"curl -s http://127.0.0.1:8000/v1/models -H 'Authorization: Bearer {S}' -H 'Content-Type: application/json'",
]  # fmt: skip
KEPT = [
    "max_num_batched_tokens=2048", "--max-num-batched-tokens 8192", "tokenizer='org/model', tokenizer_mode=auto",
    "bos_token='<s>', eos_token=</s>, pad_token: None", "GPU KV cache size: 2,096,192 tokens",
    "vllm:generation_tokens_total{engine=\"0\"} 12345678.0", "Available KV cache memory: 5.1 GiB",
    "HF_HUB_OFFLINE=1", "VLLM_CPU_KVCACHE_SPACE=4", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-curand-cu12 10.3.9.90",
    "http://127.0.0.1:8000/v1", "--host 0.0.0.0 --port 8000", "RuntimeError: Unexpected token: 5",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "api_key=None",
    "--enable-auto-tool-choice",
    "(EngineCore pid=9) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] EngineCore failed to start.",
    "Qwen/Qwen2.5-7B-Instruct", "key: value_states", "the first token took 0.3 s", "cache_key=(1, 2)",
    "password incorrect", "the secret ingredient is rope", "Set the HF_TOKEN environment variable", "Invalid API key",
    "token 151643 is out of the vocabulary", "the token llama-3.1-8b", "secret 12345678", "ENV VLLM_USE_V1 1",
    "at 20:34:14 std::bad_alloc in c10::Error, torch::jit", "[::1]:8000 and ::", "0x7f:12:30 a:b:c",
]  # fmt: skip
PRIVATE = Private(
    secrets=("correct horse battery", "tiny"), homes=("/home/ada", "/srv/people/ada"), users=("ada", "root"),
    hosts=("gpu-box-7", "gpu-box-7.corp.example"),
)  # fmt: skip


@pytest.mark.parametrize("text", PLANTED)
def test_no_planted_secret_survives(text: str) -> None:
    for clean in (hide_secrets(text), redact(text, PRIVATE)):
        assert "S3cret" not in clean
        assert "S3CRET" not in clean
        assert "***" in clean
    assert redact(redact(text, PRIVATE), PRIVATE) == redact(text, PRIVATE)
    inside = f"before {text}\nafter max_model_len=4096"
    assert "S3cret" not in redact(inside, PRIVATE)
    assert redact(inside, PRIVATE).startswith("before ")


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_is_kept(text: str) -> None:
    assert redact(text, PRIVATE) == text


def test_words_after_a_secret_are_kept() -> None:
    assert hide_secrets(f"vllm serve m --api-key {S} --port 8000") == "vllm serve m --api-key *** --port 8000"
    assert hide_secrets(f"{{'api_key': ['{S}'], 'port': 8000}}") == "{'api_key': ['***'], 'port': 8000}"
    assert hide_secrets("--api-key --port 8000") == "--api-key --port 8000"


def test_json_stays_json() -> None:
    shown = json.dumps({"api_key": S, "hf_token": S, "argv": ["--api-key", S], "n": 1, "authorization": f"Bearer {S}"})
    clean = json.loads(hide_secrets(shown))
    assert clean == {
        "api_key": "***",
        "hf_token": "***",
        "argv": ["--api-key", "***"],
        "n": 1,
        "authorization": "Bearer ***",
    }


def test_known_secrets_of_any_shape() -> None:
    assert redact("it said correct horse battery twice", PRIVATE) == "it said *** twice"
    assert redact("a tiny model", PRIVATE) == "a tiny model"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/ada/models/x and /home/ada", "~/models/x and ~"),
        ("/srv/people/ada/.cache", "~/.cache"),
        ("/home/bob/x /Users/Bob/y C:\\Users\\bob\\z", "~/x ~/y ~\\z"),
        ("/home/adamant", "~"),
        ("ada@gpu-box-7:~$ ada ran it, not adam", "USER@HOST:~$ USER ran it, not adam"),
        ("gpu-box-7.corp.example and gpu-box-7", "HOST and HOST"),
        ("mail ada.l@example.org", "mail MAIL"),
        ("NCCL eth0:10.0.3.7<0>, tcp://192.168.1.4:29500", "NCCL eth0:ADDRESS<0>, tcp://ADDRESS:29500"),
        ("ran as root", "ran as root"),
    ],
)  # fmt: skip
def test_names_and_places(text: str, clean: str) -> None:
    assert redact(text, PRIVATE) == clean
    assert redact(clean, PRIVATE) == clean


def test_prompts_that_vllm_logged() -> None:
    line = (
        "Received request cmpl-1: prompt: 'my diagnosis is', params: SamplingParams(n=1), prompt_token_ids: [1, 2], x"
    )
    assert redact(line, PRIVATE) == (
        "Received request cmpl-1: prompt: ***, params: SamplingParams(n=1), prompt_token_ids: [***], x"
    )


@pytest.mark.parametrize(
    "unit", ["a_", "a.", "--", "1.1.1.1 ", "api_key=['a',", "x-amz-", "eyJ-", "'\\", "a@", "prompt: ''"]
)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    begun = time.thread_time()
    redact(unit * (20_000 // len(unit)), PRIVATE)
    assert time.thread_time() - begun < 2.0  # the slowest takes 0.2 s


def test_addresses_of_both_kinds() -> None:
    text = "from 203.0.113.77, fd12:3456:789a::1, [2001:db8::2]:8000 and fe80::fc:ff:fe00:1%eth0 to ::1"
    assert redact(text, PRIVATE) == "from ADDRESS, ADDRESS, [ADDRESS]:8000 and ADDRESS%eth0 to ::1"
