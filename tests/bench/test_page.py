"""Reports as HTML: what a browser would load, show and run of them."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from trimtab.bench.charts import Chart, Mark, Series, svg
from trimtab.bench.page import Cell, Folded, Literally, Note, Page, Piece, Section, Sides, Table, html
from trimtab.messages import msg

EVIL = "<script>alert(1)</script> \"' onload=x &amp; </pre></title> $x_1$ \u202egnp.exe \x00\x1b[31m \ud800"
BARS = Series(EVIL, (0.0, 1.0, 2.0), (3.0, 5.0, 1.0), "bars", (1.0, 1.0, 1.0))
LINE = Series("line", tuple(map(float, range(5000))), tuple(float(at % 7) for at in range(5000)), labels=(EVIL,))
CHART = Chart(EVIL, EVIL, EVIL, (BARS, LINE), marks=(Mark(EVIL, 1.5), Mark("y", 2.0, "y")), caption=EVIL)
PAGE = Page(
    EVIL,
    Note(EVIL, "bad"),
    ((EVIL, EVIL),),
    (
        Section(EVIL, (Note(EVIL), Table((EVIL,), ((EVIL,), (Cell(EVIL, "good"),)), EVIL), CHART)),
        Section(
            EVIL,
            (Folded(EVIL, (Literally(EVIL, EVIL), Sides((EVIL, EVIL), (Piece(EVIL),), (Piece(EVIL, True),)), CHART)),),
        ),
    ),
    EVIL,
)
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Tags, attributes and texts, with a check that all that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text() -> str:
    return html(PAGE, "en")


def test_nothing_that_is_shown_can_run_or_close_an_element(text: str) -> None:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert "script" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert "alert(1)" in text
    assert not set("\x00\x1b\u202e\ud800") & set(text)
    text.encode()


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    reader = Reader()
    reader.feed(text)
    places = [v or "" for name, v in reader.attributes if name in ("src", "href", "xlink:href")]
    assert places
    assert all(place.startswith("#") for place in places)
    assert not re.findall(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text


def test_ids_of_several_pictures_stay_apart(text: str) -> None:
    reader = Reader()
    reader.feed(text)
    assert len(set(reader.ids)) == len(reader.ids)
    targets = {v for name, v in reader.attributes if name == "xlink:href"} | {
        found for _, v in reader.attributes for found in re.findall(r"url\((#[^)]+)\)", v or "")
    }
    assert {target.removeprefix("#") for target in targets if target} == set(reader.ids)


def test_a_picture_takes_its_colours_from_the_page() -> None:
    drawn = svg(CHART, "en", "x")
    ElementTree.fromstring(drawn)
    assert not re.findall(r"#[0-9a-fA-F]{6}|\b(?:black|white)\b", drawn)
    assert "var(--s1)" in drawn
    assert len(drawn) < 60_000  # 5,000 points are thinned


def test_a_picture_is_the_same_each_time() -> None:
    assert svg(CHART, "en", "x") == svg(CHART, "en", "x")


def test_messages_are_in_the_readers_language() -> None:
    page = Page(msg("report", zh="报告"), Note(msg("well", zh="良好"), "good"))
    assert "<h1>报告</h1>" in html(page, "zh")
    assert 'lang="zh-CN"' in html(page, "zh")
    assert "<h1>report</h1>" in html(page, "en")


def test_a_logarithmic_scale_has_plain_numbers() -> None:
    line = Series("gaps", (1.0, 2.0, 3.0), (0.5, 30.0, 2000.0))
    drawn = svg(Chart("gaps", "", "ms", (line,), y_log=True, x_log=True), "en", "x")
    assert "mathdefault" not in drawn
    assert {"1", "2", "10", "100", "1,000"} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))


def test_one_look_and_a_level_at_zero_are_seen() -> None:
    one = svg(Chart("one look", "", "", (Series("seen", (1.0,), (5.0,)),)), "en", "x")
    assert "<use" in one[one.index("--s1") - 600 :]  # a dot
    zero = svg(Chart("none", "", "", (Series("seen", (1.0, 2.0), (0.0, 0.0)),)), "en", "x")
    assert ">1.0</text>" in zero


def test_a_fact_of_several_lines_has_its_name_once() -> None:
    page = Page("t", Note("v"), (("memory", "one"), ("memory", "two"), ("seed", "0")))
    assert "<dt>memory</dt><dd>one</dd><dd>two</dd><dt>seed</dt><dd>0</dd>" in html(page, "en")


def test_pictures_with_chinese_text_draw_without_a_warning() -> None:
    assert "延迟" in svg(Chart(msg("latency", zh="延迟"), "", "", (LINE,)), "zh", "x")


def test_without_matplotlib_the_install_line_is_told() -> None:
    code = (
        "import sys\nclass Hide:\n def find_spec(self, name, path=None, target=None):\n"
        "  if name.split('.')[0] == 'matplotlib': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hide())\nfrom trimtab.bench.charts import require\n"
        "from trimtab.errors import HostError\ntry: require()\nexcept HostError as e: print(e, e.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'trimtab[report]'" in done.stdout
