"""What a class's views ask of results, a row each, and an index that answers for a class's submissions by itself

The rows of results that are there already are written by a worker, from their reports.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "ag_layouts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_layouts")),
    )
    op.create_table(
        "ag_facts",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("counts", sa.Boolean(), nullable=False),
        sa.Column("submission", sa.String(length=32), nullable=False),
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=True),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("tests_passed", sa.Integer(), nullable=False),
        sa.Column("tests_total", sa.Integer(), nullable=False),
        sa.Column("killed", sa.Integer(), nullable=False),
        sa.Column("mutants_total", sa.Integer(), nullable=False),
        sa.Column("rejecting", sa.Integer(), nullable=False),
        sa.Column("layout", sa.String(length=64), nullable=False),
        sa.Column("tests", sa.Text(), nullable=False),
        sa.Column("mutants", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["layout"], ["ag_layouts.id"], name=op.f("fk_ag_facts_layout")),
        sa.ForeignKeyConstraint(["run"], ["ag_runs.id"], name=op.f("fk_ag_facts_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", name=op.f("pk_ag_facts")),
    )
    op.create_index("ix_ag_facts_submission", "ag_facts", ["submission"])
    op.create_index("ix_ag_facts_layout", "ag_facts", ["layout"])
    op.create_index("ix_ag_facts_student", "ag_facts", ["course", "unit", "student", "received_at"])
    op.create_table(
        "ag_progress",
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("graded", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.Double(), nullable=False),
        sa.Column("latest_at", sa.Double(), nullable=False),
        sa.Column("passed_at", sa.Double(), nullable=True),
        sa.Column("best_submission", sa.String(length=32), nullable=False),
        sa.Column("best_score", sa.Double(), nullable=True),
        sa.Column("since_best", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["ag_runs.id"], name=op.f("fk_ag_progress_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("course", "unit", "student", name=op.f("pk_ag_progress")),
    )
    op.create_index("ix_ag_progress_run", "ag_progress", ["run"])
    op.create_table(
        "ag_rejections",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("test", sa.Text(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(length=32), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("accepts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["ag_runs.id"], name=op.f("fk_ag_rejections_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "number", name=op.f("pk_ag_rejections")),
    )
    op.drop_index("ix_ag_submissions_course", "ag_submissions")
    op.create_index(
        "ix_ag_submissions_class",
        "ag_submissions",
        ["course", "unit", "student", "counted", "received_at", "run"],
    )


def downgrade() -> None:
    op.drop_index("ix_ag_submissions_class", "ag_submissions")
    op.create_index("ix_ag_submissions_course", "ag_submissions", ["course", "unit", "student"])
    op.drop_table("ag_rejections")
    op.drop_index("ix_ag_progress_run", "ag_progress")
    op.drop_table("ag_progress")
    op.drop_index("ix_ag_facts_student", "ag_facts")
    op.drop_index("ix_ag_facts_layout", "ag_facts")
    op.drop_index("ix_ag_facts_submission", "ag_facts")
    op.drop_table("ag_facts")
    op.drop_table("ag_layouts")
