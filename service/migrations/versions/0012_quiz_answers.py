"""What students answered to the questions of a unit"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "ag_quiz_answers",
        sa.Column("course", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("student", sa.String(length=128), nullable=False),
        sa.Column("question", sa.String(length=32), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("mark", sa.String(length=16), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("answered_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["course"], ["ag_courses.id"], name=op.f("fk_ag_quiz_answers_course")),
        sa.PrimaryKeyConstraint("course", "unit", "student", "question", name=op.f("pk_ag_quiz_answers")),
    )
    op.create_index("ix_ag_quiz_answers_student", "ag_quiz_answers", ["student"])


def downgrade() -> None:
    op.drop_index("ix_ag_quiz_answers_student", "ag_quiz_answers")
    op.drop_table("ag_quiz_answers")
