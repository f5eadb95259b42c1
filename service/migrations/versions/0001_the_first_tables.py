"""The first tables"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "ag_blobs",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("byte_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_ag_blobs")),
    )
    op.create_table(
        "ag_courses",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_courses")),
    )
    op.create_table(
        "ag_tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=True),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_ag_tokens_digest")),
    )
    op.create_table(
        "ag_workers",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("beat_at", sa.Double(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("missing", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_workers")),
    )
    op.create_table(
        "ag_submissions",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=True),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_submissions_course")),
        sa.ForeignKeyConstraint(["token"], ["ag_tokens.id"], name=op.f("fk_ag_submissions_token")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_submissions")),
    )
    op.create_index("ix_ag_submissions_student", "ag_submissions", ["student", "unit"])
    op.create_index("ix_ag_submissions_unit_received", "ag_submissions", ["unit", "received_at", "id"])

    op.create_table(
        "ag_files",
        sa.Column("submission", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["ag_blobs.digest"], name=op.f("fk_ag_files_digest")),
        sa.ForeignKeyConstraint(
            ["submission"], ["ag_submissions.id"], name=op.f("fk_ag_files_submission"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("submission", "kind", "path", name=op.f("pk_ag_files")),
    )
    op.create_table(
        "ag_runs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("submission", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("phase", sa.String(length=64), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission"], ["ag_submissions.id"], name=op.f("fk_ag_runs_submission"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_runs")),
    )
    op.create_index("ix_ag_runs_finished", "ag_runs", ["finished_at"])
    op.create_index("ix_ag_runs_status", "ag_runs", ["status", "priority", "queued_at"])
    op.create_index("ix_ag_runs_submission", "ag_runs", ["submission"])

    op.create_table(
        "ag_outcomes",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["ag_runs.id"], name=op.f("fk_ag_outcomes_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "kind", "name", name=op.f("pk_ag_outcomes")),
    )
    op.create_index("ix_ag_outcomes_kind", "ag_outcomes", ["kind", "name", "outcome"])

    op.create_table(
        "ag_results",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("mutation_score", sa.Double(), nullable=True),
        sa.Column("seed", sa.String(length=20), nullable=False),
        sa.Column("report", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["ag_runs.id"], name=op.f("fk_ag_results_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", name=op.f("pk_ag_results")),
    )

    # Every submission belongs to a course offering; this one is there from the start.
    op.execute("INSERT INTO ag_courses (id, title, created_at) VALUES ('default', 'Default course', 0)")


def downgrade() -> None:
    op.drop_table("ag_results")
    op.drop_index("ix_ag_outcomes_kind", "ag_outcomes")

    op.drop_table("ag_outcomes")
    op.drop_index("ix_ag_runs_submission", "ag_runs")
    op.drop_index("ix_ag_runs_status", "ag_runs")
    op.drop_index("ix_ag_runs_finished", "ag_runs")

    op.drop_table("ag_runs")
    op.drop_table("ag_files")
    op.drop_index("ix_ag_submissions_unit_received", "ag_submissions")
    op.drop_index("ix_ag_submissions_student", "ag_submissions")

    op.drop_table("ag_submissions")
    op.drop_table("ag_workers")
    op.drop_table("ag_tokens")
    op.drop_table("ag_courses")
    op.drop_table("ag_blobs")
