"""The append-only, chained table of nodes.

A revision is a record of what was shipped: it spells its DDL out and imports nothing that may change.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    "PRAGMA application_id = 1919907699",
    """
    CREATE TABLE nodes (
        seq INTEGER NOT NULL,
        kind VARCHAR(16) NOT NULL,
        digest VARCHAR(64) NOT NULL,
        body TEXT NOT NULL,
        observed TEXT,
        stored_at_ms BIGINT NOT NULL,
        parent VARCHAR(64),
        form TEXT,
        dtype VARCHAR(16),
        rows BIGINT,
        width BIGINT,
        recipe TEXT,
        reason TEXT,
        purpose VARCHAR(16),
        geometry VARCHAR(64),
        prev VARCHAR(64) NOT NULL,
        head VARCHAR(64) NOT NULL,
        PRIMARY KEY (seq),
        CONSTRAINT uq_nodes_kind_digest UNIQUE (kind, digest),
        CONSTRAINT ck_nodes_seq CHECK (seq >= 1),
        CONSTRAINT ck_nodes_digest CHECK (length(digest) = 64),
        CONSTRAINT ck_nodes_chain CHECK (length(prev) = 64 AND length(head) = 64)
    )
    """,
    "CREATE INDEX ix_nodes_kind_seq ON nodes (kind, seq)",
    "CREATE INDEX ix_nodes_kind_parent_seq ON nodes (kind, parent, seq)",
    """
    CREATE TRIGGER nodes_no_update BEFORE UPDATE ON nodes
    BEGIN SELECT RAISE(ABORT, 'nodes is append-only: no update'); END
    """,
    """
    CREATE TRIGGER nodes_no_delete BEFORE DELETE ON nodes
    BEGIN SELECT RAISE(ABORT, 'nodes is append-only: no delete'); END
    """,
    """
    CREATE TRIGGER nodes_in_order BEFORE INSERT ON nodes
    WHEN NEW.seq != 1 + (SELECT coalesce(max(seq), 0) FROM nodes)
    OR NEW.prev != coalesce((SELECT head FROM nodes ORDER BY seq DESC LIMIT 1),
    '0000000000000000000000000000000000000000000000000000000000000000')
    OR EXISTS (SELECT 1 FROM nodes WHERE kind = NEW.kind AND digest = NEW.digest)
    BEGIN SELECT RAISE(ABORT, 'nodes is append-only: a row must follow the head and be new'); END
    """,
)


def upgrade() -> None:
    """Create the table, its indexes and the triggers that keep it append-only."""
    for statement in STATEMENTS:
        op.execute(statement)
