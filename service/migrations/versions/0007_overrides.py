"""Grades set by hand"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "ag_overrides",
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("set_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_overrides_course")),
        sa.PrimaryKeyConstraint("course", "unit", "student", name=op.f("pk_ag_overrides")),
    )
    op.create_index("ix_ag_overrides_student", "ag_overrides", ["student"])


def downgrade() -> None:
    op.drop_index("ix_ag_overrides_student", "ag_overrides")
    op.drop_table("ag_overrides")
