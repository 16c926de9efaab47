"""Events come out the same whatever the split of the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.gateway.translate import sse
from trimtab.gateway.translate.sse import Event, Reader

SAMPLES = {
    b'data: {"a":1}\n\ndata: [DONE]\n\n': [Event(b"", b'{"a":1}'), Event(b"", b"[DONE]")],
    b"event: ping\r\ndata: {}\r\n\r\nevent:x\r\ndata:y\r\n\r\n": [Event(b"ping", b"{}"), Event(b"x", b"y")],
    b"data: a\rdata: b\r\rdata: c\r\r": [Event(b"", b"a\nb"), Event(b"", b"c")],
    b"\xef\xbb\xbfdata: \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80\n\n": [
        Event(b"", "\u4f60\u597d \U0001f600".encode())
    ],
    b": keep-alive\n\ndata: 1\n\n:\n\n": [Event(b":", b"keep-alive"), Event(b"", b"1"), Event(b":", b"")],
    b"id: 7\nretry: 10\nevent: only-a-name\n\ndata\n\nunknown: x\ndata:  two\n\n": [
        Event(b"", b""),
        Event(b"", b" two"),
    ],
    b"data: a\n\n\n\ndata: b\n\n": [Event(b"", b"a"), Event(b"", b"b")],
    b"data: first\ndata: second\ndata:\n\n": [Event(b"", b"first\nsecond\n")],
    b"data: cut": [Event(b"", b"cut")],
    b"data: one\n\nevent: e\ndata: half\n": [Event(b"", b"one"), Event(b"e", b"half")],
    b"": [],
}


def read(pieces: list[bytes]) -> list[Event]:
    reader = Reader()
    found = [event for piece in pieces for event in reader.feed(piece)]
    return found + reader.end()


@pytest.mark.parametrize("text", SAMPLES)
def test_every_byte_boundary(text: bytes) -> None:
    expected = SAMPLES[text]
    assert read([text]) == expected
    assert read([text[at : at + 1] for at in range(len(text))]) == expected
    for at in range(len(text) + 1):
        assert read([text[:at], text[at:]]) == expected
        for then in range(at, min(at + 5, len(text))):
            assert read([text[:at], text[at:then], text[then:]]) == expected


_line_end = st.sampled_from([b"\n", b"\r", b"\r\n"])
_value = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r"), max_size=12)


@given(
    st.lists(st.tuples(st.sampled_from(["", "delta"]), st.lists(_value, min_size=1, max_size=3), _line_end)), st.data()
)
def test_what_is_written_is_read(events: list[tuple[str, list[str], bytes]], data: st.DataObject) -> None:
    text = b""
    for name, values, end in events:
        lines = [f"event: {name}"] * bool(name) + [f"data: {value}" for value in values]
        text += b"".join(line.encode() + end for line in lines) + end
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(pieces) == [Event(name.encode(), "\n".join(values).encode()) for name, values, _ in events]


def test_a_million_bytes_in_small_pieces() -> None:
    text = sse.data(b"x" * 1_000_000) + sse.event("last", b"y")
    pieces = [text[at : at + 1400] for at in range(0, len(text), 1400)]
    assert read(pieces) == [Event(b"", b"x" * 1_000_000), Event(b"last", b"y")]


def feed_often(piece: bytes) -> None:
    reader = Reader()
    for _ in range(100):
        reader.feed(piece)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_an_event_without_end_is_not_kept_for_ever(end: bytes) -> None:
    with pytest.raises(sse.TooLong, match="longer than 4,194,304 bytes"):
        feed_often(b"data: " + b"x" * 100_000 + end)


def test_many_events_do_not_add_up_to_one() -> None:
    reader = Reader()
    for _ in range(100):
        assert len(reader.feed(b"event: e\ndata: " + b"x" * 100_000 + b"\n\n")) == 1


def test_writers() -> None:
    assert read([sse.data(b"1"), sse.event("e", b"2"), sse.comment(b"hi"), sse.comment(b"")]) == [
        Event(b"", b"1"),
        Event(b"e", b"2"),
        Event(b":", b"hi"),
        Event(b":", b""),
    ]
