"""The samples' own tests are submissions: they are graded, never collected with ours."""

collect_ignore_glob = ["*/*"]
