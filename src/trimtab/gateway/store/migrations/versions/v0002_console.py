"""Who is at the console, and what was changed there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Logins and one-time links by the hashes of their secrets; the audit log, which only grows."""
    op.create_table(
        "logins",
        sa.Column("hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("once", sa.Boolean, nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("about", sa.Text, nullable=False),
    )
