"""The first tables."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

CODING = (
    '{"endpoints":["chat","completions","responses","messages","count_tokens","embeddings","tokenize"],'
    '"requests_per_minute":120,"tokens_per_minute":4000000,"concurrency":8,"long_prompts":2,"context":262144,'
    '"tokens_per_day":200000000}'
)


def upgrade() -> None:
    """Keys and plans, usage, and what workers tell each other; the plan `coding` is there from the beginning."""
    clock = op.create_table("clock", _number("version"))
    op.bulk_insert(clock, [{"version": 1}])
    plans = op.create_table(
        "plans",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("limits", sa.Text, nullable=False),
        _time("created"),
        _number("version"),
    )
    op.bulk_insert(plans, [{"name": "coding", "limits": CODING, "created": time.time(), "version": 1}])
    _keys()
    _usage()
    _workers()


def _keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("plan", sa.String(64), sa.ForeignKey("plans.name")),
        sa.Column("limits", sa.Text, nullable=False),
        sa.Column("admin", sa.Boolean, nullable=False),
        _time("created"),
        sa.Column("expires", sa.Float),
        sa.Column("revoked", sa.Float),
        _number("version"),
    )
    op.create_index("keys_by_version", "keys", ["version"])
    op.create_table(
        "texts",
        sa.Column("hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("key_id", sa.String(16), sa.ForeignKey("keys.id"), nullable=False),
        sa.Column("start", sa.String(24), nullable=False),
        _time("created"),
        sa.Column("ends", sa.Float),
    )
    op.create_index("texts_by_key", "texts", ["key_id"])
    op.create_table(
        "providers",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
        _time("created"),
        _number("version"),
    )


def _usage() -> None:
    whole = ("requests", "prompt_tokens", "completion_tokens", "cached_tokens", "uncounted")
    classes = [f"{of}_{n}" for of in ("seconds", "first_byte") for n in range(12)]
    op.create_table(
        "usage",
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("key_id", sa.String(16), primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("back_end", sa.Text, primary_key=True),
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("status", sa.BigInteger, primary_key=True, autoincrement=False),
        *(_number(name) for name in whole),
        *(_time(name) for name in ("seconds", "first_byte_s", "money")),
        *(_number(name) for name in classes),
    )
    op.create_table(
        "spent",
        sa.Column("key_id", sa.String(16), primary_key=True),
        sa.Column("period", sa.String(10), primary_key=True),
        _number("tokens"),
        _time("money"),
        _number("version"),
    )
    op.create_index("spent_by_version", "spent", ["version"])


def _workers() -> None:
    op.create_table(
        "workers",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        _number("batch"),
        _time("seen"),
        _number("version"),
    )
    op.create_table(
        "shares",
        sa.Column("worker", sa.String(32), primary_key=True),
        sa.Column("key_id", sa.String(16), primary_key=True),
        _number("minute"),
        sa.Column("share", sa.Text, nullable=False),
        _number("version"),
    )
    op.create_index("shares_by_version", "shares", ["version"])


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _time(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Float, nullable=False)
