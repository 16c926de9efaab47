"""The one field of a body that is renamed, wherever it stands."""

import json

import pytest

from trimtab.gateway.body import changed, read


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
