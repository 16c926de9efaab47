"""Documents: what is not ours stays as it is, what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.connect.documents import ABSENT, Form, Item, Steps, opened, put
from trimtab.errors import UsageError

FILE = Path("settings")
TEXTS = {
    Form.TOML: '# mine\nmodel = "a"  # why\n\n[other]\nx = [1, 2]\n',
    Form.YAML: "# mine\nmodel: a  # why\nother:\n  - x\n  - 'y'\n",
    Form.JSON: '{\n  // mine\n  "model": "a", /* why */\n  "other": [1, 2],\n}\n',
}
LISTED: Steps = ("models", Item("name", "ours"), "url")


@pytest.mark.parametrize("form", TEXTS)
def test_setting_and_removing_leaves_the_rest(form: Form) -> None:
    document = opened(form, TEXTS[form], FILE)
    put(document, ("deep", "er", "key"), "v", FILE)
    put(document, ("count",), 7, FILE)
    put(document, LISTED, "http://one", FILE)
    again = opened(form, document.text(), FILE)
    assert [again.get(p) for p in (("deep", "er", "key"), ("count",), LISTED)] == ["v", 7, "http://one"]
    assert all(word in document.text() for word in ("mine", "why"))
    for path in (("deep", "er", "key"), ("count",), LISTED):
        again.remove(path)
    assert again.get(("deep",)) is ABSENT
    assert again.text().split() == TEXTS[form].split() or form is Form.JSON


@pytest.mark.parametrize("form", TEXTS)
def test_a_value_is_replaced_where_it_stands(form: Form) -> None:
    document = opened(form, TEXTS[form], FILE)
    put(document, ("model",), "b", FILE)
    assert document.text() == TEXTS[form].replace('"a"', '"b"').replace("model: a", "model: b")


@pytest.mark.parametrize("form", TEXTS)
def test_an_empty_file_becomes_one(form: Form) -> None:
    document = opened(form, "", FILE)
    put(document, ("a", "b"), True, FILE)
    assert opened(form, document.text(), FILE).get(("a", "b")) is True


@pytest.mark.parametrize(
    ("form", "text", "place"),
    [
        (Form.TOML, "a = \n", "line 1"),
        (Form.JSON, '{\n  "a": 1\n  "b": 2\n}', "line 3"),
        (Form.JSON, "1", "object or a list"),
        (Form.JSON, '{"a": 1', "comma"),
        (Form.JSON, '{"a": "\\x"}', "escape"),
        (Form.JSON, '{"a":' * 3000, "levels"),
        (Form.YAML, "a: [1\nb: 2", "line"),
    ],
)
def test_what_is_not_of_its_form_is_named(form: Form, text: str, place: str) -> None:
    with pytest.raises(UsageError, match=place) as caught:
        opened(form, text, FILE)
    assert str(FILE) in str(caught.value)


@pytest.mark.parametrize("form", TEXTS)
def test_a_plain_value_on_the_way_is_refused(form: Form) -> None:
    document = opened(form, TEXTS[form], FILE)
    with pytest.raises(UsageError, match="model"):
        put(document, ("model", "x"), 1, FILE)
    assert document.text() == TEXTS[form]


@pytest.mark.parametrize(
    "text",
    ["{}", '{"a":{}}', '{\n\t"a": {\n\t\t"x": 1 // last\n\t}\n}', '{"a": {"x": 1}}\n', "// only\n", '\ufeff{"a": {}}'],
)
def test_json_of_every_shape_takes_a_member(text: str) -> None:
    document = opened(Form.JSON, text, FILE)
    put(document, ("a", "y", "z"), "v", FILE)
    again = opened(Form.JSON, document.text(), FILE)
    assert again.get(("a", "y", "z")) == "v"
    assert again.get(("a", "x")) in (1, ABSENT)


def test_lines_keep_export_and_comments() -> None:
    document = opened(Form.LINES, "# c\nexport A='x y'\nB=1", FILE)
    document.set(("A",), "new one")
    document.set(("C",), "3")
    assert document.text() == "# c\nexport A='new one'\nB=1\nC=3\n"
    document.remove(("C",))
    assert document.get(("C",)) is ABSENT
