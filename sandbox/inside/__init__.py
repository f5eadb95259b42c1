"""What runs inside the sandbox: the standard library, numpy, pytest, hypothesis, and of ours this, `wire` and `arrays`.

supervisor   root, the only one that talks to the host; starts, watches and ends runs; never runs their code
confine      the two ways of keeping runs apart: a uid each (container), a process tree each (without a container)
procfs       what /proc says about processes and memory
template     has imported and exercised everything a run needs; forks one child per run
child        one run: gives up every right, receives its files and modules, runs pytest or a drive
pytest_session  a session of pytest, prepared before the fork and run after it
modules      imports modules from bytes in memory
codes        the code of test files, compiled before there are runs
hugepages    puts the memory that runs are forked with into pages that are forked quickly
plain        tests that need nothing of pytest's plugins, run without their hooks
recorder     the pytest plugin that reports what happened, as it happens
drive        calls the unit case by case, by the driver it was given, and reports what came back
"""
