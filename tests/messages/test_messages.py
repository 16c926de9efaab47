"""Messages: values fill both languages, and nested messages follow the language of the whole."""

from __future__ import annotations

import json

from trimtab.messages import msg, packed, unpacked


def test_english_is_the_template() -> None:
    assert str(msg("needs {need_gib:.1f} GiB", need_gib=16)) == "needs 16.0 GiB"


def test_a_template_with_its_own_chinese() -> None:
    message = msg("port {port} is taken", zh="端口 {port} 已被占用", port=8000)
    assert message.text("zh") == "端口 8000 已被占用"
    assert message.text("en") == "port 8000 is taken"


def test_nested_messages_are_rendered_in_the_same_language() -> None:
    inner = msg("one", zh="一")
    assert msg("{inner}!", zh="{inner}！", inner=inner).text("zh") == "一！"


def test_braces_without_values_are_doubled() -> None:
    assert str(msg("literal {{}}")) == "literal {}"


def test_an_empty_message_stays_empty_in_chinese() -> None:
    assert msg("").text("zh") == ""


def test_a_message_comes_back_from_a_file_with_both_languages() -> None:
    inner = msg("one", zh="一")
    whole = msg("{inner} of {n:.1f}, {who!r}", zh="{n:.1f} 之 {inner}", inner=inner, n=2, who="x")
    again = unpacked(json.loads(json.dumps(packed(whole))))
    assert again is not None
    for lang in ("en", "zh"):
        assert again.text(lang) == whole.text(lang)


def test_what_is_no_message_is_none() -> None:
    for data in (
        {}, {"template": "{n}"}, {"template": "{n:.1f}", "values": {"n": "x"}}, {"template": 7}, {"template": ""},
        {"template": "a", "values": [1]}, {"template": "{", "values": {}}, {"template": "a", "zh": "{"},
    ):  # fmt: skip
        assert unpacked(data) is None, data
