"""Run the migrations that the package ships. Loaded only where a store is not up to date."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

_MIGRATIONS = Path(__file__).parent / "migrations"


def known() -> tuple[str, ...]:
    """The migrations of this Trimtab, newest first."""
    return tuple(script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def upgrade(connection: sa.Connection) -> None:
    """Bring the tables up to date within the connection's transaction."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config
