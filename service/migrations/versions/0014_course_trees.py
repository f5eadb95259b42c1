"""Course trees that were uploaded, their files, and which was taken into use when"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "ag_course_trees",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ag_course_trees")),
    )
    op.create_table(
        "ag_course_tree_files",
        sa.Column("tree", sa.String(length=32), nullable=False),
        sa.Column("path", sa.String(length=256), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["tree"], ["ag_course_trees.id"], name=op.f("fk_ag_course_tree_files_tree"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["digest"], ["ag_blobs.digest"], name=op.f("fk_ag_course_tree_files_digest")),
        sa.PrimaryKeyConstraint("tree", "path", name=op.f("pk_ag_course_tree_files")),
    )
    op.create_index("ix_ag_course_tree_files_digest", "ag_course_tree_files", ["digest"])
    op.add_column("ag_course_loads", sa.Column("tree", sa.String(length=32), nullable=True))


def downgrade() -> None:
    op.drop_column("ag_course_loads", "tree")
    op.drop_table("ag_course_tree_files")
    op.drop_table("ag_course_trees")
