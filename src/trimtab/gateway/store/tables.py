"""The tables. Every row that gateways follow carries the version of the clock at which it was written last.

One row, `clock`, is raised at the start of each transaction that writes. Its lock puts these transactions in a row, so
who has seen version n has seen all that was written before, and asks next for the rows with a version above n.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from trimtab.gateway.tally import CLASSES, SUMS

metadata = MetaData()

clock = Table("clock", metadata, Column("version", BigInteger, nullable=False))

plans = Table(
    "plans",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("limits", Text, nullable=False),  # JSON of gateway.limits.Limits
    Column("created", Float, nullable=False),  # times are seconds since 1970 UTC
    Column("version", BigInteger, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("label", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("tags", Text, nullable=False),  # JSON of name to value
    Column("plan", String(64), ForeignKey("plans.name")),
    Column("limits", Text, nullable=False),
    Column("admin", Boolean, nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
    Column("version", BigInteger, nullable=False),
    Index("keys_by_version", "version"),
)

texts = Table(
    "texts",
    metadata,
    Column("hash", LargeBinary(32), primary_key=True),  # SHA-256 of a key's text, which is kept nowhere
    Column("key_id", String(16), ForeignKey("keys.id"), nullable=False),
    Column("start", String(24), nullable=False),  # the first characters, to recognise it by
    Column("created", Float, nullable=False),
    Column("ends", Float),  # of a text that another took the place of
    Index("texts_by_key", "key_id"),
)

SPREAD = (*(f"seconds_{n}" for n in range(CLASSES)), *(f"first_byte_{n}" for n in range(CLASSES)))
_FLOATS = ("seconds", "first_byte_s", "money")
COUNTS = (*SUMS, *SPREAD)  # as a row of the tally has them
GROUP = ("start", "key_id", "model", "back_end", "path", "status")

usage = Table(
    "usage",
    metadata,
    Column("start", BigInteger, primary_key=True),  # of the minute; of the day once it is old
    Column("key_id", String(16), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("back_end", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("status", BigInteger, primary_key=True),
    *(Column(name, Float if name in _FLOATS else BigInteger, nullable=False) for name in SUMS),
    *(Column(name, BigInteger, nullable=False) for name in SPREAD),
)

spent = Table(
    "spent",
    metadata,
    Column("key_id", String(16), primary_key=True),
    Column("period", String(10), primary_key=True),  # 2026-11-30 or 2026-11
    Column("tokens", BigInteger, nullable=False),
    Column("money", Float, nullable=False),
    Column("version", BigInteger, nullable=False),
    Index("spent_by_version", "version"),
)

workers = Table(
    "workers",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),  # host and process
    Column(
        "batch", BigInteger, nullable=False
    ),  # the last one that was counted: a batch that comes twice is known by it
    Column("seen", Float, nullable=False),
    Column("version", BigInteger, nullable=False),
)

shares = Table(
    "shares",
    metadata,
    Column("worker", String(32), primary_key=True),
    Column("key_id", String(16), primary_key=True),
    Column("minute", BigInteger, nullable=False),
    Column("share", Text, nullable=False),  # JSON of gateway.admission.Share
    Column("version", BigInteger, nullable=False),
    Index("shares_by_version", "version"),
)

providers = Table(
    "providers",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("sealed", Text, nullable=False),  # a Fernet token
    Column("created", Float, nullable=False),
    Column("version", BigInteger, nullable=False),
)

logins = Table(
    "logins",
    metadata,
    Column("hash", LargeBinary(32), primary_key=True),  # SHA-256 of what the browser holds, which is kept nowhere
    Column("key_id", String(16), nullable=False),  # the admin key that opened it; empty of one-time links
    Column("once", Boolean, nullable=False),  # a link, which a login takes the place of
    Column("expires", Float, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("about", Text, nullable=False),
)
