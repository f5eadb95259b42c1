"""Learning platforms: who they are, what they launch from, and who comes through them"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "ag_lti_keys",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("private_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("signs_from", sa.Double(), nullable=False),
        sa.Column("withdrawn_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_lti_keys")),
    )
    op.create_table(
        "ag_lti_platforms",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("issuer", sa.String(length=255), nullable=False),
        sa.Column("client_id", sa.String(length=255), nullable=False),
        sa.Column("auth_login_url", sa.Text(), nullable=False),
        sa.Column("auth_token_url", sa.Text(), nullable=False),
        sa.Column("key_set_url", sa.Text(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("frame_origin", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("retired_at", sa.Double(), nullable=True),
        sa.Column("key_set", sa.Text(), nullable=True),
        sa.Column("key_set_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_lti_platforms")),
        sa.UniqueConstraint("issuer", "client_id", name=op.f("uq_ag_lti_platforms_issuer_client_id")),
    )
    op.create_table(
        "ag_lti_contexts",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("platform", sa.String(length=32), nullable=False),
        sa.Column("deployment", sa.String(length=255), nullable=False),
        sa.Column("context", sa.String(length=255), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("memberships_url", sa.Text(), nullable=False),
        sa.Column("line_items_url", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("synced_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_lti_contexts_course")),
        sa.ForeignKeyConstraint(["platform"], ["ag_lti_platforms.id"], name=op.f("fk_ag_lti_contexts_platform")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_lti_contexts")),
        sa.UniqueConstraint(
            "platform", "deployment", "context", name=op.f("uq_ag_lti_contexts_platform_deployment_context")
        ),
    )
    op.create_index("ix_ag_lti_contexts_course", "ag_lti_contexts", ["course"], unique=False)
    op.create_table(
        "ag_lti_deployments",
        sa.Column("platform", sa.String(length=32), nullable=False),
        sa.Column("deployment", sa.String(length=255), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.Column("allowed_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["platform"], ["ag_lti_platforms.id"], name=op.f("fk_ag_lti_deployments_platform")),
        sa.PrimaryKeyConstraint("platform", "deployment", name=op.f("pk_ag_lti_deployments")),
    )
    op.create_table(
        "ag_lti_invitations",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("course", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_lti_invitations_course")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_ag_lti_invitations")),
    )
    op.create_table(
        "ag_lti_logins",
        sa.Column("state", sa.String(length=64), nullable=False),
        sa.Column("browser", sa.String(length=64), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("platform", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["platform"], ["ag_lti_platforms.id"], name=op.f("fk_ag_lti_logins_platform")),
        sa.PrimaryKeyConstraint("state", name=op.f("pk_ag_lti_logins")),
    )
    op.create_index("ix_ag_lti_logins_created", "ag_lti_logins", ["created_at"], unique=False)
    op.create_table(
        "ag_lti_links",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("context", sa.String(length=32), nullable=False),
        sa.Column("resource_link", sa.String(length=255), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("line_item_url", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["context"], ["ag_lti_contexts.id"], name=op.f("fk_ag_lti_links_context"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_lti_links")),
        sa.UniqueConstraint("context", "resource_link", name=op.f("uq_ag_lti_links_context_resource_link")),
    )
    op.create_index("ix_ag_lti_links_unit", "ag_lti_links", ["context", "unit"], unique=False)
    op.create_table(
        "ag_lti_people",
        sa.Column("platform", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("user", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["platform"], ["ag_lti_platforms.id"], name=op.f("fk_ag_lti_people_platform")),
        sa.ForeignKeyConstraint(["user"], ["ag_users.id"], name=op.f("fk_ag_lti_people_user"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("platform", "subject", name=op.f("pk_ag_lti_people")),
    )
    op.create_index("ix_ag_lti_people_user", "ag_lti_people", ["user"], unique=False)
    op.create_table(
        "ag_lti_tickets",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=32), nullable=False),
        sa.Column("launch", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["user"], ["ag_users.id"], name=op.f("fk_ag_lti_tickets_user"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_lti_tickets")),
    )
    op.create_index("ix_ag_lti_tickets_user", "ag_lti_tickets", ["user"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_ag_lti_tickets_user", table_name="ag_lti_tickets")
    op.drop_table("ag_lti_tickets")
    op.drop_index("ix_ag_lti_people_user", table_name="ag_lti_people")
    op.drop_table("ag_lti_people")
    op.drop_index("ix_ag_lti_links_unit", table_name="ag_lti_links")
    op.drop_table("ag_lti_links")
    op.drop_index("ix_ag_lti_logins_created", table_name="ag_lti_logins")
    op.drop_table("ag_lti_logins")
    op.drop_table("ag_lti_invitations")
    op.drop_table("ag_lti_deployments")
    op.drop_index("ix_ag_lti_contexts_course", table_name="ag_lti_contexts")
    op.drop_table("ag_lti_contexts")
    op.drop_table("ag_lti_platforms")
    op.drop_table("ag_lti_keys")
