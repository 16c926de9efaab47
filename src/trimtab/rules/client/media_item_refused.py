"""An image, video or sound cannot be taken: not of the model's kinds, not fetched or not decoded.

What it does: reads refusals of a part that is no text.
Why it matters: a text model takes no images; a file path needs --allowed-local-media-path; a URL must be reached
    from the server, and data URLs must be whole.
How to fix: ask a model that takes it, send a base64 data URL, or allow the path or domain
    (--allowed-local-media-path, --allowed-media-domains).
When to ignore: never: the request is not served.
Sources: vllm/multimodal/media and vllm/entrypoints/chat_utils.py, vLLM 0.33 (allowed_local_media_path,
    allowed_media_domains).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"invalid or unsupported (?:audio|image|video)|format not recognised|unknown (?:image|video|audio) model type",
    r"length of \w+ \(\d+\) must be equal to the length of (?:video|image|audio)_",
    r"is not a multimodal model|not (?:a )?(?:vision|multi-?modal) model",
    r"cannot load local files without|allowed-local-media-path|allowed.media.domains|must be (?:from one of|in) "
    r"the allowed (?:media )?domains?",
    r"cannot identify image file|UnidentifiedImageError|incorrect padding|invalid base64|failed to (?:decode|open|"
    r"load|fetch|download) .{0,20}(?:image|video|audio|media)",
    r"unknown part type|(?:image|video|audio)(?:_url| input)?s? (?:is|are|input is) not supported|does not support "
    r"(?:image|video|audio|vision)",
    r"invalid ['\"`]?(?:image|video|audio)_url|(?:image|video|audio) (?:URL|data) (?:must|is invalid|not)|mmproj",
    r"for url:? ?\S+\.(?:png|jpe?g|webp|gif|bmp|mp4|mp3|wav)\b",
    r"(?:image|video|audio|multimodal).{0,60}(?:exceeds? the maximum|too large|too small|aspect ratio)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "an image, video or sound cannot be taken: not of the model's kinds, not permitted, not fetched or "
                "not decoded",
                zh="图片、视频或音频无法接受：模型不支持、不被允许、取不到或无法解码",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT049",
    name="media-item-refused",
    severity=Severity.ERROR,
    summary=msg(
        "An image, video or sound cannot be taken: not of the model's kinds, not fetched or not decoded.",
        zh="图片、视频或音频无法接受：模型不支持、取不到或无法解码。",
    ),
    check=check,
    cause=Cause.MULTIMODAL_INPUT_REFUSED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/chat_utils.py",),
    bad=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'my-model is not a multimodal model'}\n",
        ),
        Example(
            "ValueError: Cannot load local files without `--allowed-local-media-path`.\n",
        ),
        Example(
            "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object>\n",
        ),
    ),
    good=(
        Example(
            "At most 1 image(s) may be provided in one request.\n",
        ),
    ),
)
