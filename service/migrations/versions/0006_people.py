"""People who sign in, their parts in courses, sessions, links to set a password; tokens limited to courses

Tokens that are there stay good for all courses.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("ag_tokens", sa.Column("user", sa.String(length=32), nullable=True))
    op.add_column("ag_tokens", sa.Column("courses", sa.Text(), nullable=True))
    op.add_column("ag_tokens", sa.Column("created_by", sa.String(length=32), nullable=True))
    op.create_index("ix_ag_tokens_user", "ag_tokens", ["user"])

    op.create_table(
        "ag_users",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("login", sa.String(length=254), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["ag_tokens.id"], name=op.f("fk_ag_users_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_users")),
        sa.UniqueConstraint("account", name=op.f("uq_ag_users_account")),
        sa.UniqueConstraint("login", name=op.f("uq_ag_users_login")),
        sa.UniqueConstraint("student", name=op.f("uq_ag_users_student")),
    )
    op.create_table(
        "ag_members",
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("section", sa.String(length=128), nullable=False),
        sa.Column("source", sa.String(length=8), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_members_course")),
        sa.ForeignKeyConstraint(["user"], ["ag_users.id"], name=op.f("fk_ag_members_user"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("course", "user", name=op.f("pk_ag_members")),
    )
    op.create_index("ix_ag_members_user", "ag_members", ["user"])
    op.create_table(
        "ag_sessions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["user"], ["ag_users.id"], name=op.f("fk_ag_sessions_user"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_ag_sessions")),
    )
    op.create_index("ix_ag_sessions_user", "ag_sessions", ["user"])
    op.create_table(
        "ag_invitations",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["user"], ["ag_users.id"], name=op.f("fk_ag_invitations_user"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_ag_invitations")),
    )
    op.create_index("ix_ag_invitations_user", "ag_invitations", ["user"])
    op.create_table(
        "ag_guesses",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_guesses")),
    )
    op.create_index("ix_ag_guesses_key", "ag_guesses", ["key", "at"])


def downgrade() -> None:
    op.drop_index("ix_ag_guesses_key", "ag_guesses")
    op.drop_table("ag_guesses")
    op.drop_index("ix_ag_invitations_user", "ag_invitations")
    op.drop_table("ag_invitations")
    op.drop_index("ix_ag_sessions_user", "ag_sessions")
    op.drop_table("ag_sessions")
    op.drop_index("ix_ag_members_user", "ag_members")
    op.drop_table("ag_members")
    op.drop_table("ag_users")

    op.drop_index("ix_ag_tokens_user", "ag_tokens")
    op.drop_column("ag_tokens", "created_by")
    op.drop_column("ag_tokens", "courses")
    op.drop_column("ag_tokens", "user")
