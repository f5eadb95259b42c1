"""How much students are told of their reports

What courses asked of units before goes on telling everything.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

MOMENTS = ("feedback_past_limit", "feedback_after_deadline", "feedback_after_passing")


def upgrade() -> None:
    level = sa.Column("feedback", sa.String(length=16), server_default="hints", nullable=False)
    op.add_column("ag_assignments", level)
    for name in MOMENTS:
        op.add_column("ag_assignments", sa.Column(name, sa.String(length=16), nullable=True))
    op.add_column("ag_assignments", sa.Column("feedback_attempts", sa.Integer(), nullable=True))


def downgrade() -> None:
    for name in ("feedback_attempts", *MOMENTS[::-1], "feedback"):
        op.drop_column("ag_assignments", name)
