"""The tables of the service, prefixed `ag_` because the job engine keeps its own, unprefixed, in the same database.

ag_submissions  what was accepted: never changed, but for which run counts
ag_runs         one grading of a submission: its state, attempts and progress
ag_results      the report of a finished run; its primary key makes a second one impossible
ag_outcomes     what the statistics count: one row per course test and per mutant of a result
ag_blobs        bytes by their SHA-256, compressed; ag_files says which submission holds which
ag_tokens       accounts; ag_courses course offerings; ag_workers who is alive

Times are UTC seconds since 1970 (float): both databases store, compare and index them alike.
"""

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

courses = Table(
    "ag_courses",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("title", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

tokens = Table(
    "ag_tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),  # SHA-256 of the secret, which is not kept
    Column("role", String(16), nullable=False),
    Column("student", String(128)),
    Column("label", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)

blobs = Table(
    "ag_blobs",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("byte_count", Integer, nullable=False),  # before compression
)

submissions = Table(
    "ag_submissions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("unit", String(64), nullable=False),
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("student", String(128)),
    Column("token", String(32), ForeignKey("ag_tokens.id"), nullable=False),
    Column("received_at", Double, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("notes", Text, nullable=False),  # JSON: what intake did
    # The run that counts. No foreign key: the run points back, and either must be insertable first.
    Column("run", String(32), nullable=False),
)
Index("ix_ag_submissions_unit_received", submissions.c.unit, submissions.c.received_at, submissions.c.id)
Index("ix_ag_submissions_student", submissions.c.student, submissions.c.unit)

files = Table(
    "ag_files",
    metadata,
    Column("submission", String(32), ForeignKey("ag_submissions.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(8), nullable=False),  # "unit" | "test"
    Column("path", Text, nullable=False),
    Column("digest", String(64), ForeignKey("ag_blobs.digest"), nullable=False),
    PrimaryKeyConstraint("submission", "kind", "path"),
)

runs = Table(
    "ag_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("submission", String(32), ForeignKey("ag_submissions.id", ondelete="CASCADE"), nullable=False),
    Column("status", String(16), nullable=False),  # queued | running | done | error | cancelled
    Column("priority", Integer, nullable=False),  # lower goes first
    Column("queued_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("attempts", Integer, nullable=False),
    Column("worker", String(64)),
    Column("phase", String(64), nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
)
Index("ix_ag_runs_status", runs.c.status, runs.c.priority, runs.c.queued_at)
Index("ix_ag_runs_submission", runs.c.submission)
Index("ix_ag_runs_finished", runs.c.finished_at)

results = Table(
    "ag_results",
    metadata,
    Column("run", String(32), ForeignKey("ag_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("verdict", String(16), nullable=False),
    Column("score", Double),
    Column("mutation_score", Double),
    Column("seed", String(20), nullable=False),  # text, so that no client rounds it
    Column("report", LargeBinary, nullable=False),  # zlib over the report's JSON
    Column("created_at", Double, nullable=False),
)

outcomes = Table(
    "ag_outcomes",
    metadata,
    Column("run", String(32), ForeignKey("ag_runs.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(16), nullable=False),  # "course_test" | "mutant"
    Column("name", String(128), nullable=False),
    Column("outcome", String(16), nullable=False),
    PrimaryKeyConstraint("run", "kind", "name"),
)
Index("ix_ag_outcomes_kind", outcomes.c.kind, outcomes.c.name, outcomes.c.outcome)

workers = Table(
    "ag_workers",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("beat_at", Double, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("ready", Boolean, nullable=False),
    Column("missing", Text, nullable=False),  # JSON: what it lacks, in words
)
