"""Course offerings with times and attempts, takeover of workers, cached answers, idempotency, audit

Columns are added and dropped in place, never by copying a table: on SQLite that would drop the old one, and the
cascade would take along every row that points to it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "ag_audit",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object", sa.String(length=128), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=True),
        sa.Column("course", sa.String(length=64), nullable=True),
        sa.Column("unit", sa.String(length=64), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_ag_audit_at", "ag_audit", ["at"])
    op.create_index("ix_ag_audit_student", "ag_audit", ["student"])

    op.create_table(
        "ag_idempotency",
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("submission", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("token", "key", name=op.f("pk_ag_idempotency")),
    )
    op.create_index("ix_ag_idempotency_created", "ag_idempotency", ["created_at"])

    op.create_table(
        "ag_secrets",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_ag_secrets")),
    )
    op.create_table(
        "ag_assignments",
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("opens_at", sa.Double(), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("closes_at", sa.Double(), nullable=True),
        sa.Column("late_policy", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=True),
        sa.Column("attempts_per_hour", sa.Integer(), nullable=True),
        sa.Column("cooldown_seconds", sa.Double(), nullable=True),
        sa.Column("counts", sa.String(length=16), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_assignments_course")),
        sa.PrimaryKeyConstraint("course", "unit", name=op.f("pk_ag_assignments")),
    )
    op.create_table(
        "ag_extensions",
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("closes_at", sa.Double(), nullable=True),
        sa.Column("extra_attempts", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_extensions_course")),
        sa.PrimaryKeyConstraint("course", "unit", "student", name=op.f("pk_ag_extensions")),
    )
    op.create_table(
        "ag_cache",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["ag_runs.id"], name=op.f("fk_ag_cache_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_ag_cache")),
    )
    op.create_index("ix_ag_cache_run", "ag_cache", ["run"])

    op.create_index("ix_ag_files_digest", "ag_files", ["digest"])

    op.add_column("ag_courses", sa.Column("timezone", sa.String(length=64), server_default="UTC", nullable=False))
    op.add_column("ag_courses", sa.Column("archived_at", sa.Double(), nullable=True))

    op.add_column("ag_runs", sa.Column("version", sa.Integer(), server_default="0", nullable=False))
    op.add_column("ag_runs", sa.Column("kind", sa.String(length=16), server_default="first", nullable=False))
    op.add_column("ag_runs", sa.Column("requested_by", sa.String(length=32), nullable=True))
    op.add_column("ag_runs", sa.Column("reason", sa.Text(), server_default="", nullable=False))
    op.add_column("ag_runs", sa.Column("cancel_at", sa.Double(), nullable=True))
    op.add_column("ag_runs", sa.Column("quarantined", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("ag_runs", sa.Column("cache_key", sa.String(length=64), nullable=True))
    op.add_column("ag_runs", sa.Column("cached_from", sa.String(length=32), nullable=True))
    op.create_index("ix_ag_runs_worker", "ag_runs", ["worker", "status"])
    op.add_column("ag_runs", sa.Column("unit", sa.String(length=64), server_default="", nullable=False))
    op.execute("UPDATE ag_runs SET unit = (SELECT s.unit FROM ag_submissions s WHERE s.id = ag_runs.submission)")
    op.create_index("ix_ag_runs_order", "ag_runs", ["status", "priority", "queued_at", "id", "unit"])
    op.drop_index("ix_ag_runs_status", "ag_runs")

    op.add_column("ag_submissions", sa.Column("stored_at", sa.Double(), server_default="0", nullable=False))
    op.execute("UPDATE ag_submissions SET stored_at = received_at")
    op.add_column("ag_submissions", sa.Column("counted", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.create_index("ix_ag_submissions_course", "ag_submissions", ["course", "unit", "student"])
    op.drop_index("ix_ag_submissions_student", "ag_submissions")
    op.create_index("ix_ag_submissions_student", "ag_submissions", ["student", "course", "unit"])

    op.add_column("ag_workers", sa.Column("host", sa.String(length=255), server_default="", nullable=False))
    op.add_column("ag_workers", sa.Column("grading", sa.String(length=64), server_default="", nullable=False))
    op.add_column("ag_workers", sa.Column("stats", sa.Text(), server_default="{}", nullable=False))


def downgrade() -> None:
    op.drop_column("ag_workers", "stats")
    op.drop_column("ag_workers", "grading")
    op.drop_column("ag_workers", "host")

    op.drop_index("ix_ag_submissions_student", "ag_submissions")
    op.create_index("ix_ag_submissions_student", "ag_submissions", ["student", "unit"])
    op.drop_index("ix_ag_submissions_course", "ag_submissions")
    op.drop_column("ag_submissions", "counted")
    op.drop_column("ag_submissions", "stored_at")

    op.create_index("ix_ag_runs_status", "ag_runs", ["status", "priority", "queued_at"])
    op.drop_index("ix_ag_runs_order", "ag_runs")
    op.drop_column("ag_runs", "unit")
    op.drop_index("ix_ag_runs_worker", "ag_runs")
    op.drop_column("ag_runs", "cached_from")
    op.drop_column("ag_runs", "cache_key")
    op.drop_column("ag_runs", "quarantined")
    op.drop_column("ag_runs", "cancel_at")
    op.drop_column("ag_runs", "reason")
    op.drop_column("ag_runs", "requested_by")
    op.drop_column("ag_runs", "kind")
    op.drop_column("ag_runs", "version")

    op.drop_column("ag_courses", "archived_at")
    op.drop_column("ag_courses", "timezone")

    op.drop_index("ix_ag_files_digest", "ag_files")

    op.drop_index("ix_ag_cache_run", "ag_cache")

    op.drop_table("ag_cache")
    op.drop_table("ag_extensions")
    op.drop_table("ag_assignments")
    op.drop_table("ag_secrets")
    op.drop_index("ix_ag_idempotency_created", "ag_idempotency")

    op.drop_table("ag_idempotency")
    op.drop_index("ix_ag_audit_student", "ag_audit")
    op.drop_index("ix_ag_audit_at", "ag_audit")

    op.drop_table("ag_audit")
