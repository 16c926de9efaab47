"""Pictures for reports: a `Chart` as inline SVG, drawn by matplotlib (extra `report`), coloured by the page's CSS."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trimtab.errors import HostError
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Style = Literal["line", "steps", "points", "bars", "area"]
Text = Message | str
MOST_POINTS = 600  # of a line: more are not seen
MOST_LETTERS = 36  # of a name in a picture

# Drawn in colours that nothing else has, which are then replaced by the page's own (light or dark).
_SERIES = ("#010101", "#010102", "#010103", "#010104", "#010105", "#010106")
_INK, _FAINT, _LINE = "#020201", "#020202", "#020203"
_CSS = {color: f"var(--s{at})" for at, color in enumerate(_SERIES, 1)} | {
    _INK: "var(--ink)",
    _FAINT: "var(--faint)",
    _LINE: "var(--line)",
}


class Series(msgspec.Struct, frozen=True):
    """Points in order of x. `steps`: a value holds until the next; `bars`: x are the left edges, `widths` their widths.

    `labels` are written beside the points.
    """

    name: Text
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: Style = "line"
    widths: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    color: int | None = None  # 0 to 5; None: the next one
    low: tuple[float, ...] = ()  # ends of an interval around y, with `high`
    high: tuple[float, ...] = ()


class Mark(msgspec.Struct, frozen=True):
    """A straight line across the picture at a value of x or y, with its name."""

    name: Text
    at: float
    axis: Literal["x", "y"] = "x"


class Chart(msgspec.Struct, frozen=True):
    """One picture. Scales begin at zero where they are not logarithmic and nothing lies below."""

    title: Text
    x_name: Text
    y_name: Text
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    caption: Text = ""
    x_log: bool = False
    y_log: bool = False
    ticks: tuple[str, ...] = ()  # names of x = 0, 1, 2 ... where x is no number
    height: float = 2.6  # inches at a width of 8.4


def require() -> None:
    """HostError when matplotlib is missing: call it before work that ends in a report."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise HostError(
            msg("an HTML report needs matplotlib for its pictures, and it is not installed"),
            hint=msg("Install it: pip install 'trimtab[report]', or ask for --json."),
        ) from None


def svg(chart: Chart, lang: str, mark: str) -> str:
    """The picture as an SVG element. `mark` keeps its ids apart from those of other pictures of one page."""
    require()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    out = StringIO()
    title = printed(chart.title.text(lang) if isinstance(chart.title, Message) else chart.title)
    rc: Any = {"svg.fonttype": "none", "svg.hashsalt": mark, "font.size": 9, "text.parse_math": False}
    with mpl.rc_context(rc), warnings.catch_warnings():
        # The text stays text, and the reader's own fonts have the characters that matplotlib's lack.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=(8.4, chart.height), layout="constrained")
        axes = figure.add_subplot()
        _dress(axes, chart, title, lang)
        for at, series in enumerate(chart.series):
            _draw(axes, series, lang, _SERIES[(at if series.color is None else series.color) % len(_SERIES)])
        _scales(axes, chart)
        for line in chart.marks:
            _mark(axes, line, lang)
        _legend(figure, axes, chart)
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(out.getvalue(), title, mark)


def _words(text: Text, lang: str) -> str:
    """In a picture a text has one line, and not too long a one: it would leave no room for the rest."""
    words = printed(text.text(lang) if isinstance(text, Message) else text)
    return short(" ".join(words.split()), MOST_LETTERS)


def short(text: str, most: int) -> str:
    """At most `most` characters of `text`."""
    return text if len(text) <= most else text[: most - 1] + "…"


def printed(text: str) -> str:
    """`text` without what XML may not hold or what turns its direction around (Trojan Source)."""
    return "".join(c if c >= " " or c in "\n\t" else "\ufffd" for c in text).translate(_UNSEEN)


# Controls that a browser obeys and nobody sees, and lone surrogates of broken JSON.
_UNSEEN = dict.fromkeys(
    [0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)], "\ufffd"
)


def _dress(axes: Axes, chart: Chart, title: str, lang: str) -> None:
    axes.set_title(short(title, 100), loc="left", color=_INK, fontsize=10)
    axes.set_xlabel(_words(chart.x_name, lang), color=_FAINT)
    axes.set_ylabel(_words(chart.y_name, lang), color=_FAINT)
    axes.tick_params(which="both", colors=_FAINT)
    axes.grid(visible=True, color=_LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_LINE)
    if chart.ticks:
        axes.set_xticks(range(len(chart.ticks)), labels=[_words(tick, lang) for tick in chart.ticks])


def _draw(axes: Axes, series: Series, lang: str, color: str) -> None:
    x, y = _thinned(series)
    name: Any = {"label": _words(series.name, lang), "color": color}
    if series.style == "bars":
        axes.bar(series.x, series.y, width=series.widths or 0.7, align="edge" if series.widths else "center", **name)
    elif series.style == "points" or len(x) == 1:  # of a line through one point nothing would be seen
        axes.plot(x, y, linestyle="none", marker="o", markersize=4.5, clip_on=False, zorder=3, **name)
    elif series.style == "area":
        axes.fill_between(x, y, alpha=0.35, linewidth=0, step="post", **name)
    else:
        axes.plot(
            x, y, linewidth=1.4, drawstyle="steps-post" if series.style == "steps" else "default", clip_on=False, **name
        )
    if series.low and series.high:
        below = [value - low for value, low in zip(series.y, series.low, strict=True)]
        above = [high - value for value, high in zip(series.y, series.high, strict=True)]
        axes.errorbar(series.x, series.y, yerr=(below, above), fmt="none", ecolor=color, elinewidth=1, capsize=3)
    for at, label in enumerate(series.labels):
        place = (series.x[at], series.y[at])
        axes.annotate(_words(label, lang), place, xytext=(4, 4), textcoords="offset points", color=_INK, fontsize=8)


def _thinned(series: Series) -> tuple[Sequence[float], Sequence[float]]:
    """At most `MOST_POINTS`, both ends among them."""
    count = len(series.x)
    if count <= MOST_POINTS or series.style in ("points", "bars"):
        return series.x, series.y
    kept = [round(at * (count - 1) / (MOST_POINTS - 1)) for at in range(MOST_POINTS)]
    return [series.x[at] for at in kept], [series.y[at] for at in kept]


def _scales(axes: Axes, chart: Chart) -> None:
    if chart.x_log:
        axes.set_xscale("log")
        _plain(axes.xaxis)
    if chart.y_log:
        axes.set_yscale("log")
        _plain(axes.yaxis)
    elif all(value >= 0 for series in chart.series for value in series.y):
        most = max((value for series in chart.series for value in (*series.y, *series.high)), default=0.0)
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.08 * most) if most else 1.0)  # a level one keeps off the edge


def _plain(axis: Axis) -> None:
    """Numbers as people write them: powers of ten would be mathematics, which is not drawn in a text."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    least, most = axis.get_view_interval()
    few = most < 30 * least
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def _mark(axes: Axes, line: Mark, lang: str) -> None:
    draw = axes.axvline if line.axis == "x" else axes.axhline
    draw(line.at, color=_FAINT, linewidth=1, linestyle=(0, (4, 3)))
    name, across = _words(line.name, lang), line.axis == "x"
    place, frame = (line.at, 0.98), axes.get_xaxis_transform()
    if not across:
        place, frame = (0.99, line.at), axes.get_yaxis_transform()
    axes.annotate(
        name, place, xycoords=frame, xytext=(3, 0) if across else (0, 3), textcoords="offset points", color=_INK,
        fontsize=8, ha="left" if across else "right", va="top" if across else "bottom",
        rotation=90 if across else 0,
    )  # fmt: skip


def _legend(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Below the picture, where nothing is drawn."""
    if len(chart.series) > 1:
        handles, names = axes.get_legend_handles_labels()
        box = figure.legend(
            handles, names, loc="outside lower left", frameon=False, fontsize=8, ncols=min(3, len(chart.series))
        )
        for text in box.get_texts():
            text.set_color(_INK)


def _inline(text: str, title: str, mark: str) -> str:
    """One element: without prolog, metadata and style of its own; ids that nothing refers to fall away."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*(; )?", "", text)  # the page's own
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    for name in re.findall(r'\bid="([^"]+)"', text):
        text = text.replace(f' id="{name}"', "" if name not in used else f' id="c{mark}-{name}"')
    for name in used:
        text = text.replace(f'"#{name}"', f'"#c{mark}-{name}"').replace(f"url(#{name})", f"url(#c{mark}-{name})")
    for color, variable in _CSS.items():
        text = text.replace(color, variable)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title, quote=True)}" ', 1).strip()
