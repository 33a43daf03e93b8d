"""Runs revisions on the connection that `server.database.upgrade` hands over, inside its one transaction."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=True)
context.run_migrations()
