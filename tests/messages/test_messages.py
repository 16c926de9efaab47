"""Messages: values fill both languages, and nested messages follow the language of the whole."""

from __future__ import annotations

from trimtab.messages import msg


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
