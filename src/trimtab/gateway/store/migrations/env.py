"""What Alembic runs around the migrations: in the transaction of whoever opened the store."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
