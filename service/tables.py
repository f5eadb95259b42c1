"""The tables of the service, prefixed `ag_` because the job engine keeps its own, unprefixed, in the same database.

ag_submissions  what was accepted: never changed, but for which run counts
ag_runs         one grading of a submission: its state, attempts and progress
ag_results      the report of a finished run; its primary key makes a second one impossible
ag_outcomes     what the statistics count: one row per course test and per mutant of a result
ag_facts        what the class's views ask of a result, one row each; ag_layouts names the columns of its outcomes
ag_rejections   tests of students that rejected correct code, one row each of a result
ag_progress     how far each student is with a unit, made of the facts that count
ag_blobs        bytes by their SHA-256, compressed; ag_files says which submission holds which
ag_cache        the run that answers for the same submission graded under the same conditions
ag_tokens       accounts; ag_workers who is alive; ag_secrets keys of the service's own
ag_users        people who sign in, each with an account of their own; ag_members the part each has in which course
ag_sessions     who is signed in; ag_invitations links with which a password is set; ag_guesses failed sign-ins
ag_courses      course offerings; ag_assignments what one asks of a unit: times, attempts; ag_extensions for one student
ag_overrides    a student's grade for a unit, set by hand
ag_regrades     regrades of many submissions, tried before they count; ag_regrade_items each submission of one;
                ag_regrade_decisions what was last decided of it, and how far that is
ag_course_trees files of the course that were uploaded; ag_course_tree_files names the blob of each
ag_course_loads which files of the course were taken into use when: workers start anew after that
ag_versions     what a unit was made of in each state of it by which something was graded
ag_quiz_answers what students answered to the questions of a unit
ag_hints        hints that students unlocked, and what they thought of them
ag_idempotency  what was answered to a POST with an Idempotency-Key
ag_deliveries   whom a grade, or the end of a submission, is told, and how far that is; ag_targets who tells them
ag_lti_*        learning platforms: platforms, deployments and keys; logins, tickets and invitations that wait for their
                next step; contexts, links and people: which course, unit and user of ours a platform's ids stand for
ag_audit        who did what, never changed but for a student's name when that is erased

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
    UniqueConstraint,
    false,
    true,
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
    Column("timezone", String(64), nullable=False, server_default="UTC"),  # IANA: how its times are said
    Column("archived_at", Double),
    Column("listed_only", Boolean, nullable=False, server_default=false()),  # no student who is not in it
)

assignments = Table(
    "ag_assignments",
    metadata,
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("opens_at", Double),
    Column("due_at", Double),  # later is late
    Column("closes_at", Double),  # later is not taken in
    Column("late_policy", Text, nullable=False),  # JSON, see service/deadlines.py
    Column("attempts", Integer),  # in all; null: as many as one likes
    Column("attempts_per_hour", Integer),
    Column("cooldown_seconds", Double),
    Column("counts", String(16), nullable=False),  # best | latest: which submission is the grade
    # Unlocks of a student; null: without that limit. Rows of before 0003 got what is usual.
    Column("hints", Integer, server_default="20"),
    Column("hints_per_hour", Integer, server_default="6"),
    Column("hint_cooldown_seconds", Double, server_default="60"),
    # Levels of feedback, see service/offerings.py. Null: that moment changes nothing.
    Column("feedback", String(16), nullable=False, server_default="hints"),
    Column("feedback_past_limit", String(16)),
    Column("feedback_after_deadline", String(16)),
    Column("feedback_after_passing", String(16)),
    Column("feedback_attempts", Integer),
    Column("updated_at", Double, nullable=False),
    PrimaryKeyConstraint("course", "unit"),
)

extensions = Table(
    "ag_extensions",
    metadata,
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("student", String(128), nullable=False),
    Column("due_at", Double),  # null: as for everyone
    Column("closes_at", Double),
    Column("extra_attempts", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("token", String(32), nullable=False),  # who granted it
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("course", "unit", "student"),
)

overrides = Table(
    "ag_overrides",
    metadata,
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("student", String(128), nullable=False),
    Column("score", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("token", String(32), nullable=False),  # who set it
    Column("set_at", Double, nullable=False),
    PrimaryKeyConstraint("course", "unit", "student"),
)
Index("ix_ag_overrides_student", overrides.c.student)

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
    # Whose account or token it is. No foreign key: the user points back, and either must be insertable first.
    Column("user", String(32)),
    Column("courses", Text),  # JSON: the courses it is limited to; null: it is good for all
    Column("created_by", String(32)),  # the account that made it; null: the command line
)
Index("ix_ag_tokens_user", tokens.c.user)

users = Table(
    "ag_users",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("account", String(32), ForeignKey("ag_tokens.id"), nullable=False, unique=True),
    Column("login", String(254), nullable=False, unique=True),  # as service/people/users.py folds it
    Column("name", Text, nullable=False),
    Column("student", String(128), nullable=False, unique=True),  # by which submissions know the person
    Column("password", Text),  # argon2id; null: none was set
    Column("admin", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
)

members = Table(
    "ag_members",
    metadata,
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("user", String(32), ForeignKey("ag_users.id", ondelete="CASCADE"), nullable=False),
    Column("role", String(16), nullable=False),  # teacher | grader | student
    Column("section", String(128), nullable=False),  # '' for none
    Column("source", String(8), nullable=False),  # csv | lti | api | page
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("course", "user"),
)
Index("ix_ag_members_user", members.c.user)

sessions = Table(
    "ag_sessions",
    metadata,
    Column("digest", String(64), primary_key=True),  # SHA-256 of the cookie, which is not kept
    Column("user", String(32), ForeignKey("ag_users.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("agent", Text, nullable=False),  # what the browser calls itself
    Column("address", String(64), nullable=False),
)
Index("ix_ag_sessions_user", sessions.c.user)

invitations = Table(
    "ag_invitations",
    metadata,
    Column("digest", String(64), primary_key=True),  # SHA-256 of the code in the link
    Column("user", String(32), ForeignKey("ag_users.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)
Index("ix_ag_invitations_user", invitations.c.user)

guesses = Table(
    "ag_guesses",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("key", String(64), nullable=False),  # digest of a login or an address
    Column("at", Double, nullable=False),
)
Index("ix_ag_guesses_key", guesses.c.key, guesses.c.at)

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
    Column("received_at", Double, nullable=False),  # what counts for deadlines: of the receipt, if there is one
    Column("stored_at", Double, nullable=False, server_default="0"),
    Column("digest", String(64), nullable=False),
    Column("notes", Text, nullable=False),  # JSON: what intake did
    Column(
        "counted", Boolean, nullable=False, server_default=true()
    ),  # uses an attempt, unless cancelled or our failure
    # The run that counts. No foreign key: the run points back, and either must be insertable first.
    Column("run", String(32), nullable=False),
)
Index("ix_ag_submissions_unit_received", submissions.c.unit, submissions.c.received_at, submissions.c.id)
Index("ix_ag_submissions_student", submissions.c.student, submissions.c.course, submissions.c.unit)
Index(
    "ix_ag_submissions_class",
    *(submissions.c[name] for name in ("course", "unit", "student", "counted", "received_at", "run")),
)

files = Table(
    "ag_files",
    metadata,
    Column("submission", String(32), ForeignKey("ag_submissions.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(8), nullable=False),  # "unit" | "test"
    Column("path", Text, nullable=False),
    Column("digest", String(64), ForeignKey("ag_blobs.digest"), nullable=False),
    PrimaryKeyConstraint("submission", "kind", "path"),
)
Index("ix_ag_files_digest", files.c.digest)  # whether a blob is still named

runs = Table(
    "ag_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("submission", String(32), ForeignKey("ag_submissions.id", ondelete="CASCADE"), nullable=False),
    Column("unit", String(64), nullable=False, server_default=""),  # the submission's: what waits is counted by it
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
    Column("version", Integer, nullable=False, server_default="0"),  # grows with every change: what followers wait for
    Column("kind", String(16), nullable=False, server_default="first"),  # first | regrade | trial
    Column("requested_by", String(32)),  # the token that asked for a regrade
    Column("reason", Text, nullable=False, server_default=""),
    Column("cancel_at", Double),  # when somebody asked to stop it while it ran
    Column("quarantined", Boolean, nullable=False, server_default=false()),  # the worker died in every attempt
    Column("cache_key", String(64)),  # see service/cache.py
    Column("cached_from", String(32)),  # the run whose report this one repeats
)
Index("ix_ag_runs_worker", runs.c.worker, runs.c.status)
Index("ix_ag_runs_order", runs.c.status, runs.c.priority, runs.c.queued_at, runs.c.id, runs.c.unit)
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

layouts = Table(
    "ag_layouts",
    metadata,
    Column("id", String(64), primary_key=True),  # SHA-256 of the names
    Column("names", Text, nullable=False),  # JSON: course tests and mutants, in the order of a row's characters
)

# Written at the end of a run, beside its result; see service/classroom/facts.py.
facts = Table(
    "ag_facts",
    metadata,
    Column("run", String(32), ForeignKey("ag_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("counts", Boolean, nullable=False),  # it is the run that counts of its submission
    Column("submission", String(32), nullable=False),
    Column("course", String(64), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("student", String(128)),
    Column("received_at", Double, nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("score", Double),
    Column("tests_passed", Integer, nullable=False),
    Column("tests_total", Integer, nullable=False),
    Column("killed", Integer, nullable=False),
    Column("mutants_total", Integer, nullable=False),
    Column("rejecting", Integer, nullable=False),  # the student's tests that reject correct code
    Column("layout", String(64), ForeignKey("ag_layouts.id"), nullable=False),
    Column("tests", Text, nullable=False),  # a character for each course test, in the layout's order
    Column("mutants", Text, nullable=False),  # and for each mutant
)
Index("ix_ag_facts_submission", facts.c.submission)
Index("ix_ag_facts_layout", facts.c.layout)
Index("ix_ag_facts_student", facts.c.course, facts.c.unit, facts.c.student, facts.c.received_at)

# One row for each student, made of all facts of theirs that count whenever one is added or counts no more.
progress = Table(
    "ag_progress",
    metadata,
    Column("course", String(64), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("student", String(128), nullable=False),
    Column("run", String(32), ForeignKey("ag_runs.id", ondelete="CASCADE"), nullable=False),  # of the latest submission
    Column("graded", Integer, nullable=False),
    Column("first_at", Double, nullable=False),
    Column("latest_at", Double, nullable=False),
    Column("passed_at", Double),  # when the first submission that passes was received
    Column("best_submission", String(32), nullable=False),
    Column("best_score", Double),
    Column("since_best", Integer, nullable=False),  # submissions that came after it and were no better
    PrimaryKeyConstraint("course", "unit", "student"),
)
Index("ix_ag_progress_run", progress.c.run)

rejections = Table(
    "ag_rejections",
    metadata,
    Column("run", String(32), ForeignKey("ag_runs.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("test", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("line", Integer, nullable=False),
    Column("code", String(32), nullable=False),  # what kind of rejection, see service/classroom/facts.py
    Column("said", Text, nullable=False),  # what it denies, the number it misprints, the cause that ended it
    Column("accepts", Text, nullable=False),  # ids of the mutants it passes, of a test that rejects all correct code
    PrimaryKeyConstraint("run", "number"),
)

workers = Table(
    "ag_workers",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("beat_at", Double, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("ready", Boolean, nullable=False),
    Column("missing", Text, nullable=False),  # JSON: what it lacks, in words
    Column("host", String(255), nullable=False, server_default=""),
    Column(
        "grading", String(64), nullable=False, server_default=""
    ),  # digest of everything a grade depends on but the files
    Column("stats", Text, nullable=False, server_default="{}"),  # JSON: its counters, for /metrics
)

regrades = Table(
    "ag_regrades",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("which", String(16), nullable=False),  # all | latest | chosen: which submissions of each student
    Column("reason", Text, nullable=False),
    Column("token", String(32), nullable=False),  # who asked
    Column("created_at", Double, nullable=False),
)
Index("ix_ag_regrades_course", regrades.c.course, regrades.c.created_at)

regrade_items = Table(
    "ag_regrade_items",
    metadata,
    Column("regrade", String(32), ForeignKey("ag_regrades.id", ondelete="CASCADE"), nullable=False),
    Column("submission", String(32), ForeignKey("ag_submissions.id", ondelete="CASCADE"), nullable=False),
    Column("before_run", String(32), nullable=False),  # the run that counted when it was asked for
    Column("run", String(32)),  # the trial; null: it is not in the queue yet
    Column("state", String(16), nullable=False),  # waiting | trial | applied | dropped | rolled_back
    Column("moved", Boolean),  # whether anything came out otherwise; null: there is no report yet
    Column("why", Text, nullable=False),  # JSON: what came out otherwise, and what was different
    PrimaryKeyConstraint("regrade", "submission"),
)
Index("ix_ag_regrade_items_run", regrade_items.c.run)
Index("ix_ag_regrade_items_submission", regrade_items.c.submission)
Index("ix_ag_regrade_items_state", regrade_items.c.state, regrade_items.c.regrade)

regrade_decisions = Table(
    "ag_regrade_decisions",
    metadata,
    Column("regrade", String(32), ForeignKey("ag_regrades.id", ondelete="CASCADE"), primary_key=True),
    Column("what", String(16), nullable=False),  # apply | drop | rollback
    Column("chosen", Text),  # JSON: the submissions that were named; null: all
    Column("token", String(32), nullable=False),  # who decided, and what they were then
    Column("role", String(16), nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("begun_at", Double, nullable=False),
    Column("after", String(128), nullable=False),  # the student up to whom it is done
    Column("submissions", Integer, nullable=False),  # to how many it was done
    Column("stale", Integer, nullable=False),
    Column("ended_at", Double),
)

course_loads = Table(
    "ag_course_loads",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("token", String(32), nullable=False),  # who asked
    Column("digest", String(64), nullable=False),  # of the course as it was read
    Column("tree", String(32)),  # null: the files on the machine
    sqlite_autoincrement=True,
)

course_trees = Table(
    "ag_course_trees",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("made_at", Double, nullable=False),
    Column("token", String(32), nullable=False),  # who sent it
    Column("note", Text, nullable=False),
    Column("found", Text, nullable=False),  # JSON: what it would have changed then, and what is wrong with it
)

course_tree_files = Table(
    "ag_course_tree_files",
    metadata,
    Column("tree", String(32), ForeignKey("ag_course_trees.id", ondelete="CASCADE"), nullable=False),
    Column("path", String(256), nullable=False),
    Column("digest", String(64), ForeignKey("ag_blobs.digest"), nullable=False),
    PrimaryKeyConstraint("tree", "path"),
)
Index("ix_ag_course_tree_files_digest", course_tree_files.c.digest)

versions = Table(
    "ag_versions",
    metadata,
    Column("unit", String(64), nullable=False),
    Column("digest", String(64), nullable=False),  # of the unit
    Column("image", String(128), nullable=False),  # in which it was graded
    Column("grader", String(64), nullable=False),  # the grader's version
    Column("first_at", Double, nullable=False),
    Column("parts", Text, nullable=False),  # JSON: by kind and name, the digest of each part
    PrimaryKeyConstraint("unit", "digest", "image", "grader"),
)

cache = Table(
    "ag_cache",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("run", String(32), ForeignKey("ag_runs.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
)
Index("ix_ag_cache_run", cache.c.run)

hints = Table(
    "ag_hints",
    metadata,
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("student", String(128), nullable=False),
    Column("mutant", String(16), nullable=False),
    Column("number", Integer, nullable=False),  # 1 stands in every report: a row only if it was rated
    Column("unlocked_at", Double, nullable=False),
    Column("counted", Boolean, nullable=False),  # uses up a limit; not if a teacher unlocked it
    Column("helpful", Boolean),  # null: not rated
    Column("rated_at", Double),
    PrimaryKeyConstraint("course", "unit", "student", "mutant", "number"),
)
Index("ix_ag_hints_unit", hints.c.unit, hints.c.mutant, hints.c.number)
Index("ix_ag_hints_student", hints.c.student)

quiz_answers = Table(
    "ag_quiz_answers",
    metadata,
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("student", String(128), nullable=False),
    Column("question", String(32), nullable=False),
    Column("answer", Text, nullable=False),
    Column("mark", String(16), nullable=False),  # right | wrong | kept
    Column("message", Text, nullable=False),
    Column("answered_at", Double, nullable=False),
    PrimaryKeyConstraint("course", "unit", "student", "question"),
)
Index("ix_ag_quiz_answers_student", quiz_answers.c.student)

idempotency = Table(
    "ag_idempotency",
    metadata,
    Column("token", String(32), nullable=False),
    Column("key", String(255), nullable=False),
    Column("fingerprint", String(64), nullable=False),  # of what was posted
    Column("submission", String(32)),  # null: still being taken in
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("token", "key"),
)
Index("ix_ag_idempotency_created", idempotency.c.created_at)

deliveries = Table(
    "ag_deliveries",
    metadata,
    Column("id", String(32), primary_key=True),  # a digest of what, to whom and where: there is one row for each
    Column("channel", String(16), nullable=False),  # ags | webhook
    Column("target", String(64), nullable=False),  # the platform, or the token that asked to be called back
    Column("address", Text, nullable=False),  # of the line item, or to call back
    Column("recipient", String(255), nullable=False),  # the student as the platform knows them
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("student", String(128), nullable=False),
    # Whose end is told; null: the grade is, whatever it comes from.
    Column("submission", String(32), ForeignKey("ag_submissions.id", ondelete="CASCADE")),
    Column("state", String(16), nullable=False),  # idle | waiting | delivered | failed
    Column("revision", Integer, nullable=False),  # grows with every change that is to be told
    Column("due_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False),  # since it was last delivered, or changed
    Column("failing_since", Double),
    Column("message", Text, nullable=False),  # JSON: may have arrived, and is sent again as it is; '': nothing may
    Column("message_revision", Integer, nullable=False),
    Column("stamped_at", Double, nullable=False),  # the time in the last message: it only grows
    Column("told", Text, nullable=False),  # JSON: what is known to have arrived last
    Column("delivered_at", Double),
    Column("status_code", Integer),  # of the last answer
    Column("error", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
)
Index("ix_ag_deliveries_student", deliveries.c.course, deliveries.c.unit, deliveries.c.student)
Index(
    "ix_ag_deliveries_due",
    *(deliveries.c[name] for name in ("state", "channel", "target", "due_at", "id")),
)
Index("ix_ag_deliveries_changed", deliveries.c.course, deliveries.c.changed_at, deliveries.c.id)
Index("ix_ag_deliveries_state", *(deliveries.c[name] for name in ("course", "state", "changed_at", "id")))
Index("ix_ag_deliveries_submission", deliveries.c.submission)

targets = Table(
    "ag_targets",
    metadata,
    Column("channel", String(16), nullable=False),
    Column("target", String(64), nullable=False),
    Column("holder", String(64), nullable=False),  # the process that sends there
    Column("held_until", Double, nullable=False),
    Column("paused_until", Double, nullable=False),  # it does not answer, or asked for a pause
    Column("failures", Integer, nullable=False),  # in a row
    PrimaryKeyConstraint("channel", "target"),
)

secrets = Table(
    "ag_secrets",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
)

audit = Table(
    "ag_audit",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("token", String(32)),  # who; null: the command line or the service itself
    Column("role", String(16), nullable=False),
    Column("action", String(64), nullable=False),  # such as "submission.cancel"
    Column("object", String(128), nullable=False),  # the id of what it was done to
    Column("student", String(128)),  # whom it concerns; a pseudonym once erased
    Column("course", String(64)),
    Column("unit", String(64)),
    Column("detail", Text, nullable=False),  # JSON
    Column("request_id", String(64), nullable=False),
    sqlite_autoincrement=True,
)
Index("ix_ag_audit_student", audit.c.student)
Index("ix_ag_audit_at", audit.c.at)

lti_platforms = Table(
    "ag_lti_platforms",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("issuer", String(255), nullable=False),
    Column("client_id", String(255), nullable=False),
    Column("auth_login_url", Text, nullable=False),  # where a browser is sent to be known
    Column("auth_token_url", Text, nullable=False),  # where we ask for tokens of its services
    Column("key_set_url", Text, nullable=False),
    Column("audience", Text, nullable=False),  # of our token requests; empty: auth_token_url
    Column("frame_origin", Text, nullable=False),  # whose pages may show ours in a frame; empty: nobody's
    Column("created_at", Double, nullable=False),
    Column("retired_at", Double),
    Column("key_set", Text),  # JSON: as it was fetched last
    Column("key_set_at", Double),
    UniqueConstraint("issuer", "client_id"),
)

lti_deployments = Table(
    "ag_lti_deployments",
    metadata,
    Column("platform", String(32), ForeignKey("ag_lti_platforms.id"), nullable=False),
    Column("deployment", String(255), nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("allowed_at", Double),  # null: it knocked, and nobody has let it in
    PrimaryKeyConstraint("platform", "deployment"),
)

lti_logins = Table(
    "ag_lti_logins",
    metadata,
    Column("state", String(64), primary_key=True),  # digests: the values themselves are in the browser
    Column("browser", String(64), nullable=False),
    Column("nonce", String(64), nullable=False),
    Column("platform", String(32), ForeignKey("ag_lti_platforms.id"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double),
)
Index("ix_ag_lti_logins_created", lti_logins.c.created_at)

lti_contexts = Table(
    "ag_lti_contexts",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("platform", String(32), ForeignKey("ag_lti_platforms.id"), nullable=False),
    Column("deployment", String(255), nullable=False),
    Column("context", String(255), nullable=False),  # the platform's id of its course
    Column("title", Text, nullable=False),
    Column("course", String(64), ForeignKey("ag_courses.id"), nullable=False),
    Column("memberships_url", Text, nullable=False),  # empty: the platform offers none
    Column("line_items_url", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("synced_at", Double),  # when its members were last read
    UniqueConstraint("platform", "deployment", "context"),
)
Index("ix_ag_lti_contexts_course", lti_contexts.c.course)

lti_links = Table(
    "ag_lti_links",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("context", String(32), ForeignKey("ag_lti_contexts.id", ondelete="CASCADE"), nullable=False),
    Column("resource_link", String(255), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("line_item_url", Text, nullable=False),  # empty: nothing to send a score to
    Column("created_at", Double, nullable=False),
    UniqueConstraint("context", "resource_link"),
)
Index("ix_ag_lti_links_unit", lti_links.c.context, lti_links.c.unit)

lti_people = Table(
    "ag_lti_people",
    metadata,
    Column("platform", String(32), ForeignKey("ag_lti_platforms.id"), nullable=False),
    Column("subject", String(255), nullable=False),  # the platform's id of a person
    Column("user", String(32), ForeignKey("ag_users.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("platform", "subject"),
)
Index("ix_ag_lti_people_user", lti_people.c.user)

lti_keys = Table(
    "ag_lti_keys",
    metadata,
    Column("id", String(64), primary_key=True),  # the kid
    Column("private_key", Text, nullable=False),  # PEM
    Column("created_at", Double, nullable=False),
    Column("signs_from", Double, nullable=False),  # later than it is published, so that platforms know it by then
    Column("withdrawn_at", Double),  # not published from then on
)

lti_invitations = Table(
    "ag_lti_invitations",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("token", String(32), nullable=False),  # who made it
    Column(
        "course", String(64), ForeignKey("ag_courses.id")
    ),  # which a platform's course may be connected to; null: it invites a platform to register
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("used_at", Double),
)

lti_tickets = Table(
    "ag_lti_tickets",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user", String(32), ForeignKey("ag_users.id", ondelete="CASCADE"), nullable=False),
    Column("launch", Text, nullable=False),  # JSON: what is to be decided on
    Column("created_at", Double, nullable=False),
)
Index("ix_ag_lti_tickets_user", lti_tickets.c.user)
