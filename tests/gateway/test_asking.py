"""The gateway's own questions: each has a connection that no request ever shares."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.gateway.scripted import CHAT, CLOSE, answer, one, run, until
from trimtab.gateway.asking import ask
from trimtab.gateway.inbound import Inbound
from trimtab.gateway.outbound import Outbound


def test_the_connection_of_a_question_is_never_a_requests() -> None:
    """A request that took it in the turn in which the answer came was cut off with it, and never heard of it."""

    async def test() -> None:
        async with one([answer()]) as (running, there):
            back_end = running.fleet.back_ends["a"]
            asking = asyncio.create_task(ask(back_end, b"/v1/models", 5))
            while not asking.done():  # every turn, the one between the answer and the asker's own among them
                assert back_end.pool.take() is None
                await asyncio.sleep(0)
            assert (await asking)[0] == 200
            assert back_end.pool.take() is None
            await there.left.wait()

    run(test())


def test_requests_and_questions_beside_each_other_are_all_answered() -> None:
    async def test() -> None:
        async with one([answer()]) as (running, _):
            back_end = running.fleet.back_ends["a"]
            for _ in range(20):
                asked = await asyncio.gather(running.ask(), ask(back_end, b"/v1/models", 5), running.ask())
                assert (asked[0].json, asked[1][0], asked[2].json) == (CHAT, 200, CHAT)

    run(test())


def test_a_question_that_nobody_answers_cuts_its_connection() -> None:
    async def test() -> None:
        async with one([]) as (running, there):
            with pytest.raises(TimeoutError):
                await ask(running.fleet.back_ends["a"], b"/v1/models", 0.1)
            await there.left.wait()

    run(test())


class Deaf:
    """Wants no answer."""

    def answer_begins(self, connection: Outbound) -> None:
        raise AssertionError("there was an answer")

    answer_piece = answer_ends = answer_breaks = answer_begins


def test_who_gave_up_a_request_on_a_lost_connection_hears_no_more_of_it() -> None:
    async def test() -> None:
        async with one([CLOSE]) as (running, _):
            connection = await running.fleet.back_ends["a"].pool.dial(1)
            connection.abandon()
            await asyncio.sleep(0)  # it is lost in the next turn
            connection.send(b"GET / HTTP/1.1\r\n\r\n", Deaf())
            connection.abandon()
            await asyncio.sleep(0)

    run(test())


def test_connections_that_ended_leave_no_cycle_behind() -> None:
    """Else memory grows with each question and each client, however few, until gc looks through the old ones."""

    async def test() -> None:
        async with one([answer()]) as (running, _):
            await running.ask()
            gc.collect()
            gc.disable()
            try:
                for _ in range(10):
                    await ask(running.fleet.back_ends["a"], b"/v1/models", 5)
                    await running.ask()
                await until(lambda: len([k for k in gc.get_objects() if isinstance(k, (Inbound, Outbound))]) <= 3)
            finally:
                gc.enable()

    run(test())
