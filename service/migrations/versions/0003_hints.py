"""Hints that students unlock one after the other, and a teacher's limits on them

What a course asks of a unit gets the usual limits, as it has none yet.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "ag_hints",
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=False),
        sa.Column("mutant", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("unlocked_at", sa.Double(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("helpful", sa.Boolean(), nullable=True),
        sa.Column("rated_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_hints_course")),
        sa.PrimaryKeyConstraint("course", "unit", "student", "mutant", "number", name=op.f("pk_ag_hints")),
    )
    op.create_index("ix_ag_hints_unit", "ag_hints", ["unit", "mutant", "number"])
    op.create_index("ix_ag_hints_student", "ag_hints", ["student"])

    op.add_column("ag_assignments", sa.Column("hints", sa.Integer(), server_default="20", nullable=True))
    op.add_column("ag_assignments", sa.Column("hints_per_hour", sa.Integer(), server_default="6", nullable=True))
    op.add_column("ag_assignments", sa.Column("hint_cooldown_seconds", sa.Double(), server_default="60", nullable=True))


def downgrade() -> None:
    op.drop_column("ag_assignments", "hint_cooldown_seconds")
    op.drop_column("ag_assignments", "hints_per_hour")
    op.drop_column("ag_assignments", "hints")

    op.drop_index("ix_ag_hints_student", "ag_hints")
    op.drop_index("ix_ag_hints_unit", "ag_hints")

    op.drop_table("ag_hints")
