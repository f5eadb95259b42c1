"""Regrades of many submissions, tried before they count, and the states of units by which was graded"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "ag_regrades",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("which", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_regrades_course")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_regrades")),
    )
    op.create_index("ix_ag_regrades_course", "ag_regrades", ["course", "created_at"])
    op.create_table(
        "ag_regrade_items",
        sa.Column("regrade", sa.String(length=32), nullable=False),
        sa.Column("submission", sa.String(length=32), nullable=False),
        sa.Column("before_run", sa.String(length=32), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("moved", sa.Boolean(), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["regrade"], ["ag_regrades.id"], name=op.f("fk_ag_regrade_items_regrade"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission"], ["ag_submissions.id"], name=op.f("fk_ag_regrade_items_submission"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("regrade", "submission", name=op.f("pk_ag_regrade_items")),
    )
    op.create_index("ix_ag_regrade_items_run", "ag_regrade_items", ["run"])
    op.create_index("ix_ag_regrade_items_submission", "ag_regrade_items", ["submission"])
    op.create_index("ix_ag_regrade_items_state", "ag_regrade_items", ["state", "regrade"])
    op.create_table(
        "ag_versions",
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("image", sa.String(length=128), nullable=False),
        sa.Column("grader", sa.String(length=64), nullable=False),
        sa.Column("first_at", sa.Double(), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("unit", "digest", "image", "grader", name=op.f("pk_ag_versions")),
    )


def downgrade() -> None:
    op.drop_table("ag_versions")
    for name in ("state", "submission", "run"):
        op.drop_index(f"ix_ag_regrade_items_{name}", "ag_regrade_items")
    op.drop_table("ag_regrade_items")
    op.drop_index("ix_ag_regrades_course", "ag_regrades")
    op.drop_table("ag_regrades")
