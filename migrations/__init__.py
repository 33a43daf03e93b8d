"""Alembic migrations, run only by `rowsmith db upgrade`."""
