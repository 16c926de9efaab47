"""The one field of a body that is renamed, wherever it stands."""

import json

import pytest

from trimtab.gateway.body import changed, form_renamed, read, read_form
from trimtab.gateway.request import Refused


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"here","messages":[{"role":"user","content":"\\"model\\": \\"here\\""}]}',
        b'{ "messages" : [] , "model" :\n "here" , "seed" : 1.50 }',
        b'{"metadata":{"model":"here"},"model":"here"}',
        b'{"model":"here","metadata":{"model":"here"}}',
        b'{"stop":"model","model":"here"}',
        b'{"model":"h\\u0065re","seed":1}',
        '{"model":"here","user":"wörld 你好"}'.encode(),
    ],
)
def test_only_the_models_own_name_is_changed(body: bytes) -> None:
    assert read(body).model == "here"
    found = json.loads(changed(body, model='th"ère', ask_usage=False))
    assert found == {**json.loads(body), "model": 'th"ère'}


def test_the_rest_of_a_body_stays_byte_for_byte() -> None:
    body = b'{ "seed" : 1.50 , "model" : "here", "x":  [1e3] }'
    assert changed(body, model="there", ask_usage=False) == body.replace(b'"here"', b'"there"')


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"mine","model":"theirs"}',
        b'{"model":"mine","messages":[],"mod\\u0065l":"theirs"}',
        b'{"\\u006Dodel":"theirs","model":"mine"}',
        b'{"model":"mine","Model":"theirs"}',
        b'{"model":"mine","\\u004dODEL":"theirs"}',
        b'{"x":{"model":"x"},"model":"mine","model":"theirs"}',
        b'{"model":"mine","x":[{"model":1}],"x":2}',
    ],
)
def test_a_body_that_names_two_models_is_refused(body: bytes) -> None:
    """Parsers differ in which of the two they take, so a key could be used for a model that it may not ask."""
    with pytest.raises(Refused, match="the field model is given twice") as refused:
        read(body)
    assert (refused.value.status, refused.value.param) == (400, "model")


def test_curls_own_content_type_is_told_with_what_to_add() -> None:
    with pytest.raises(Refused, match=r"with curl: -H 'Content-Type: application/json'"):
        read(b'{"model":"m"}', b"application/x-www-form-urlencoded")


def test_a_body_in_another_encoding_is_refused_before_a_back_end_sees_it() -> None:
    body = '{"model":"m","messages":[{"role":"user","content":"你好"}]}'
    assert read(body.encode()).model == "m"
    with pytest.raises(Refused, match=r"the body is not UTF-8: .*byte \d+") as refused:
        read(body.encode("gbk"))
    assert (refused.value.status, refused.value.code) == (400, "invalid_json")


KIND = b"multipart/form-data; boundary=b1"
FILE = b'--b1\r\nContent-Disposition: form-data; name="file"; filename="name=\\"model.wav"\r\n\r\nRIFF\r\n\r\n--b2\r\n'


def part(disposition: bytes, value: bytes = b"mine") -> bytes:
    return b"--b1\r\n%b\r\n\r\n%b\r\n" % (disposition, value)


PLAIN = part(b'Content-Disposition: form-data; name="model"')


def test_the_model_of_a_form_is_found_and_changed() -> None:
    form = FILE + PLAIN + b"--b1--\r\n"
    assert read_form(form, KIND).model == "mine"
    assert form_renamed(form, KIND, "theirs") == form.replace(b"mine", b"theirs")
    bare = FILE + part(b"content-type: text/plain\r\ncontent-disposition:form-data; name=model") + b"--b1--"
    assert read_form(bare, b'multipart/form-data; boundary="b1"').model == "mine"


@pytest.mark.parametrize(
    "body",
    [
        PLAIN + part(b'Content-Disposition: form-data; name="model"', b"theirs") + b"--b1--",
        PLAIN + part(b'Content-Disposition: form-data; name="Model"', b"theirs") + b"--b1--",
        PLAIN + part(b"Content-Disposition: form-data; name*=utf-8''model", b"theirs") + b"--b1--",
        PLAIN + part(b'Content-Disposition: form-data; name="mod\\el"', b"theirs") + b"--b1--",
        part(b'Content-Disposition: form-data; name="x"; name="model"') + b"--b1--",
        part(b'Content-Disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="model"') + b"--b1--",
        part(b'Content-Disposition: form-data;\r\n name="model"') + b"--b1--",
        part(b'X: y\nContent-Disposition: form-data; name="model"') + b"--b1--",
        b"x\r\n" + PLAIN + b"--b1--",
        PLAIN,
        PLAIN + b"--b1--"[:4],
        PLAIN + b"--b1\r\n--b1--",
        b"",
    ],
)
def test_a_form_that_another_parser_could_read_otherwise_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        read_form(body, KIND)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "kind", [KIND + b"; boundary=b2", b"multipart/form-data; xboundary=b1; boundary=b1", KIND[:19]]
)
def test_a_form_needs_one_boundary(kind: bytes) -> None:
    with pytest.raises(Refused, match="Content-Type must name one boundary"):
        read_form(PLAIN + b"--b1--", kind)
