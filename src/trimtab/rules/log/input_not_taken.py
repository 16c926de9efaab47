"""The model takes no such input, or it could not be fetched or read.

What it does: reads refusals of images, video and sound by a model that has none, of paths and hosts that are not
    allowed, and of data that is no image.
Why it matters: a text model refuses content that is not text; files and hosts must be allowed at the start.
How to fix: serve a model that has the modality; start with --allowed-local-media-path or --allowed-media-domains;
    send a URL that the server itself can reach, or the data in base64.
When to ignore: when a client sent what it should not.
Sources: vllm/multimodal/utils.py (media connector), vllm/entrypoints/chat_utils.py, vllm/config/model.py, vLLM 0.5 to
    0.33; PIL.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, SURE, Hit, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"Unknown (?:image|video|audio|\w+) model type: |Invalid or unsupported (?:audio|video|image)|Error opening "
        r"<_io\.BytesIO.{0,40}>: Format not recognised|(?:no|No) (?:decodable frames|audio found in)"
    ),
    r"length of \w+ \(\d+\) must be equal to the length of (?:video|image|audio)_\w+",
    (
        r"[Mm]ismatch between the (?:images|videos|audios)|Number of .{0,60}tokens in prompt .{0,40}does not match|"
        r"(?:Audio|Video|Image) exceeds (?:the )?maximum"
    ),
    (
        r"[Nn]ot a multimodal model|[Tt]he model is not multimodal|are only supported for multimodal|"
        r"(?<!limit_mm_per_prompt)(?<!limit_mm_per_prompt`) is only supported for multimodal models"
    ),
    (
        r"(?:does not|doesn't) support (?:image|audio|video|multi-?modal)\b|Unknown part type: \w+|Unsupported "
        r"modality"
    ),
    (
        r"Expected there to be \d+ .{0,40}items? in keyword arguments|Expected there to be \d+ prompt (?:updates|"
        r"replacements)"
    ),
    r"Attempted to assign .{0,200}multimodal tokens to \d+ placeholders",
    r"must set `--enable-mm-embeds`|Invalid (?:image|video|audio) type|Invalid type of data items",
    r"Cannot load local files without",
    r"--allowed-local-media-path`?: The path|must be a subpath of",
    (
        r"cannot identify image file|[Ff]ailed to (?:load|decode|open) (?:image|audio|video)|Could not open video "
        r"stream|UnidentifiedImageError"
    ),
    (
        r"Invalid '(?:image|audio|video)_url'|The URL must be from one of the allowed domains|Failed to fetch "
        r"(?:image|audio|video)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg("the input is not taken: {said}", zh="输入不被接受：{said}", said=words.said(hit))
        yield context.finding(hit, message, confidence, severity=words.by_request(context))
        return
    guess = words.guessed(context, OF_MEDIA, MEDIA) or _fetched(context)
    if guess is not None:
        message = msg(
            "probably an image, video or sound does not suit the model: the code that reads them raised {said}",
            zh="可能是图片、视频或音频不适合该模型：读取它们的代码报错 {said}",
            said=words.quoted(guess),
        )
        yield context.finding(guess, message, HUNCH, severity=words.by_request(context))


def _fetched(context: LogContext) -> Hit | None:
    """A traceback that ends before its error, in the code that fetches a request's media."""
    hit = context.framed(FETCH)
    return hit if hit is not None and hit.entry.text.startswith("Traceback:") else None


FETCH = r"in (?:fetch|load)_(?:image|audio|video)(?:_async)?\b"
OF_MEDIA = (
    r"[Mm]ulti-?modal (?:data|item|input|placeholder|embedding)"
    r"|\b(?:image|video|audio)s?\b.{0,40}(?:must|invalid|unsupported|expected)"
)
MEDIA = (
    r"vllm[/\\]multimodal[/\\]|processors[/\\]\w+\.py"
    r"|transformers[/\\]models[/\\]\w+[/\\](?:image_|video_|feature_)?(?:processing|extraction)_"
)


RULE = Rule(
    code="LOG509",
    name="input-not-taken",
    severity=Severity.ERROR,
    summary=msg(
        "The model takes no such input, or it could not be fetched or read.",
        zh="模型不接受这种输入，或无法获取、读取它。",
    ),
    check=check,
    cause=Cause.MULTIMODAL_INPUT_REFUSED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/multimodal/utils.py",),
    bad=(
        Example("ValueError: /models/m is not a multimodal model\n"),
        Example("RuntimeError: Cannot load local files without `--allowed-local-media-path`.\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [x.py:1] This model supports multimodal inputs\n"),),
)
