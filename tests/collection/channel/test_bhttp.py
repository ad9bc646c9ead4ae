"""HTTP messages as bytes."""

from __future__ import annotations

import pytest
from channel_vectors import rfc
from hypothesis import given
from hypothesis import strategies as st

from polyseme.device.ohttp import Request, Response, padded
from polyseme.kernel.errors import ChannelError

EXAMPLE = rfc("ohttp")
texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=80)
headers = st.lists(st.tuples(texts.map(str.lower), texts), max_size=5).map(tuple)
requests = st.builds(Request, texts, texts, texts, texts, headers, st.binary(max_size=20_000))
responses = st.builds(Response, st.integers(200, 599), headers, st.binary(max_size=20_000))


def test_reads_the_example_of_the_rfc() -> None:
    assert Request.decoded(EXAMPLE["request"]) == Request("GET", "https", "example.com", "/")
    assert Response.decoded(EXAMPLE["response"]) == Response(200)


def test_writes_the_example_of_the_rfc() -> None:
    # The RFC leaves out the empty sections at the end, which are three zero bytes of ours.
    assert Request("GET", "https", "example.com", "/").encoded() == EXAMPLE["request"] + bytes(3)
    assert Response(200).encoded() == EXAMPLE["response"] + bytes(3)


@given(requests, st.integers(0, 50))
def test_a_request_comes_back(request: Request, more: int) -> None:
    message = request.encoded()
    assert Request.decoded(padded(message, len(message) + more)) == request


@given(responses, st.integers(0, 50))
def test_a_response_comes_back(response: Response, more: int) -> None:
    message = response.encoded()
    assert Response.decoded(padded(message, len(message) + more)) == response


def test_informational_responses_are_passed_over() -> None:
    early = bytes([1]) + bytes([0x40, 103]) + bytes([4]) + b"\1a\1b"
    assert Response.decoded(early + Response(201, (), b"stored").encoded()[1:]) == Response(201, (), b"stored")


@given(st.binary(max_size=200))
def test_anything_is_read_or_refused(message: bytes) -> None:
    for kind in (Request, Response):
        try:
            kind.decoded(message)
        except ChannelError:
            continue


@given(requests, st.data())
def test_no_message_is_read_that_was_cut_inside(request: Request, data: st.DataObject) -> None:
    message = request.encoded()
    cut = data.draw(st.integers(0, len(message) - 4)) if len(message) > 4 else 0
    shorter = message[:cut]
    try:
        assert Request.decoded(shorter).encoded().rstrip(b"\0") == shorter.rstrip(b"\0")
    except ChannelError:
        return


def test_what_follows_a_message_is_padding_only() -> None:
    with pytest.raises(ChannelError, match="padding"):
        Request.decoded(Request("GET", "https", "a", "/").encoded() + b"\0\1")


def test_a_message_that_is_too_long_is_not_cut() -> None:
    with pytest.raises(ChannelError, match="does not fit the 10"):
        padded(bytes(11), 10)


def test_bodies_are_not_shown() -> None:
    assert "MARKEDVALUE77" not in repr(Request("POST", "https", "a", "/", (), b"MARKEDVALUE77"))
    assert "MARKEDVALUE77" not in repr(Response(200, (), b"MARKEDVALUE77"))
