"""What is told to learning platforms and other systems, and who tells them"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "ag_deliveries",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("recipient", sa.String(length=255), nullable=False),
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=False),
        sa.Column("submission", sa.String(length=32), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failing_since", sa.Double(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("message_revision", sa.Integer(), nullable=False),
        sa.Column("stamped_at", sa.Double(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("delivered_at", sa.Double(), nullable=True),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_deliveries_course")),
        sa.ForeignKeyConstraint(
            ["submission"], ["ag_submissions.id"], name=op.f("fk_ag_deliveries_submission"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_deliveries")),
    )
    op.create_index("ix_ag_deliveries_student", "ag_deliveries", ["course", "unit", "student"])
    op.create_index("ix_ag_deliveries_due", "ag_deliveries", ["state", "channel", "target", "due_at", "id"])
    op.create_index("ix_ag_deliveries_changed", "ag_deliveries", ["course", "changed_at", "id"])
    op.create_index("ix_ag_deliveries_state", "ag_deliveries", ["course", "state", "changed_at", "id"])
    op.create_index("ix_ag_deliveries_submission", "ag_deliveries", ["submission"])

    op.create_table(
        "ag_targets",
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("held_until", sa.Double(), nullable=False),
        sa.Column("paused_until", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "target", name=op.f("pk_ag_targets")),
    )


def downgrade() -> None:
    op.drop_table("ag_targets")
    op.drop_index("ix_ag_deliveries_submission", "ag_deliveries")
    op.drop_index("ix_ag_deliveries_state", "ag_deliveries")
    op.drop_index("ix_ag_deliveries_changed", "ag_deliveries")
    op.drop_index("ix_ag_deliveries_due", "ag_deliveries")
    op.drop_index("ix_ag_deliveries_student", "ag_deliveries")
    op.drop_table("ag_deliveries")
