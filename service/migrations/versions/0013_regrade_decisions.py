"""What was decided of batches of regrades, and how far that is"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "ag_regrade_decisions",
        sa.Column("regrade", sa.String(length=32), nullable=False),
        sa.Column("what", sa.String(length=16), nullable=False),
        sa.Column("chosen", sa.Text(), nullable=True),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("begun_at", sa.Double(), nullable=False),
        sa.Column("after", sa.String(length=128), nullable=False),
        sa.Column("submissions", sa.Integer(), nullable=False),
        sa.Column("stale", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["regrade"], ["ag_regrades.id"], name=op.f("fk_ag_regrade_decisions_regrade"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("regrade", name=op.f("pk_ag_regrade_decisions")),
    )


def downgrade() -> None:
    op.drop_table("ag_regrade_decisions")
