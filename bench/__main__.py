"""Compare, print tables, and as the last line one JSON object: `python -m bench [--variants N] [--rounds N] ...`."""

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median

from bench import contenders, growth, service, work
from bench.contenders import JOBS, Took
from bench.table import percentile, spread, table
from grader import reach
from grader.unit import Unit
from grader.units import DEFAULT_COURSE, load_course
from sandbox.docker_engine import DockerSandbox
from sandbox.package import code_of
from sandbox.records import Module

Rounds = dict[str, list[Took]]
SAMPLE = work.SUITE.parent
WHEATS = 5  # with three runs of the reference, eight of correct code
WARM_POSTS = 6  # until ready containers hold what all sessions begin with


def main() -> None:
    said = options()
    unit = load_course(DEFAULT_COURSE).units["L5.3"]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, {JOBS} jobs each")
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as name:
        root = Path(name)
        figures = told(compare(unit, root, said.variants, said.rounds, said.containers))
        figures |= served(root, said.posts)
        if not said.no_growth:
            grown(unit, figures)
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    print(json.dumps(figures))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="How fast mutation grading is.")
    parser.add_argument("--variants", type=int, default=100, help="mutmut's mutants of the reference (default 100)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of every contender, in turn (default 3)")
    parser.add_argument("--containers", type=int, default=10, help="variants that get a container each (default 10)")
    parser.add_argument("--posts", type=int, default=10, help="submissions posted one after the other (default 10)")
    parser.add_argument("--no-growth", action="store_true", help="leave out how cost grows")
    return parser.parse_args()


def compare(unit: Unit, root: Path, most: int, count: int, containers: int) -> Rounds:
    """Every contender once a round, so that what else the machine does is the same for all."""
    suite = work.suite_of()
    folder = work.lay(root / "mutmut", suite)
    job = work.Work(work.mutmut_mutants(folder, most), suite)
    few = work.Work(dict(list(job.variants.items())[:: max(1, len(job.variants) // containers)][:containers]), suite)
    for source in job.variants.values():
        code_of(Module(work.MODULE, source, work.UNIT_PATH))
        reach.changed(unit, {unit.files[0].path: source})
    rounds: Rounds = {"ours": [], "mutmut 3": [], "a process each": [], "a container each": []}
    with DockerSandbox(jobs=JOBS) as sandbox, contenders.ours(unit, job, sandbox) as run_ours:
        run_ours()  # not counted
        for _ in range(count):
            rounds["ours"].append(run_ours())
            rounds["mutmut 3"].append(contenders.mutmut(job, folder))
            rounds["a process each"].append(contenders.process_each(job))
            rounds["a container each"].append(contenders.container_each(few))
    return rounds


def told(rounds: Rounds) -> dict[str, float]:
    """Print the comparison; returns its figures. Ratios are medians of ratios within a round."""
    ours = rounds["ours"]
    ratios = {
        name: [took.seconds_each / own.seconds_each for took, own in zip(each, ours, strict=True)]
        for name, each in rounds.items()
    }
    cpu_ratios = {
        name: median(
            took.cpu_seconds / took.variants * own.variants / own.cpu_seconds
            for took, own in zip(each, ours, strict=True)
        )
        for name, each in rounds.items()
    }
    rows = []
    for name, each in rounds.items():
        wall, wall_range = spread([took.seconds_each for took in each], 1000)
        cpu, _ = spread([took.cpu_seconds / took.variants for took in each], 1000)
        by_cpu = f"{cpu_ratios[name]:.1f}" if name != "a container each" else "-"
        shown = cpu if name != "a container each" else "-"  # its processes are the engine's
        rows.append([name, str(each[0].variants), wall, wall_range, f"{median(ratios[name]):.1f}", shown, by_cpu])
    head = ["", "variants", "ms each", "range", "ratio", "CPU ms each", "ratio"]
    print(table("One run per variant to its first failure", head, rows))
    starts = {name: median(took.start_seconds for took in rounds[name]) for name in ("ours", "mutmut 3")}
    print("\nNot counted:")
    print(f"mutmut's start (generate, statistics, clean and forced-failure run): {starts['mutmut 3']:.1f} s")
    print(f"our run on the reference, which says what tests take and reach: {starts['ours']:.2f} s")
    for name in ("mutmut 3", "a process each"):
        differ = ours[0].failed ^ rounds[name][0].failed
        print(f"variants on which {name} and ours disagree: {len(differ)} {sorted(differ)[:5] if differ else ''}")
    cores = min(JOBS, os.cpu_count() or 1)
    overhead = median(took.wall_seconds / (took.cpu_seconds / cores) for took in ours)
    return {
        "naive_ratio": round(median(ratios["a process each"]), 2),
        "mutmut_ratio": round(median(ratios["mutmut 3"]), 2),
        "naive_cpu_ratio": round(cpu_ratios["a process each"], 2),
        "mutmut_cpu_ratio": round(cpu_ratios["mutmut 3"], 2),
        "overhead": round(overhead, 3),
        "variants_per_second": round(1 / median(took.seconds_each for took in ours), 1),
    }


def served(root: Path, posts: int) -> dict[str, float]:
    """Print how long a submission takes where the unit has the wheats that are aimed at, and all that it has; returns
    the figures of the former, and one of the latter."""
    rows, figures = [], []
    data = root / "data"
    data.mkdir()
    for name, course in ((f"{WHEATS} wheats", work.course_with(WHEATS, root / "fewer")), ("all", DEFAULT_COURSE)):
        with service.serving(data, course) as running:
            for _ in range(WARM_POSTS):
                running.post_warm(SAMPLE)  # not counted
            seconds = [running.post_warm(SAMPLE) for _ in range(posts)]
            together = running.post_at_once(SAMPLE, posts)
        middle, between = spread(seconds, 1, 2)
        late, per_minute = percentile(seconds, 0.95), 60 * posts / together
        rows.append([f"{SAMPLE.name}, {name}", middle, f"{late:.2f}", between, f"{per_minute:.1f}"])
        figures.append((median(seconds), late, per_minute))
    print(table("A whole grading, from POST to report", ["sample", "p50 s", "p95 s", "range", "per minute"], rows))
    (middle_s, late_s, rate), (middle_of_all_s, _, _) = figures
    return {
        "post_to_report_p50_s": round(middle_s, 3),
        "post_to_report_p95_s": round(late_s, 3),
        "post_to_report_with_all_wheats_p50_s": round(middle_of_all_s, 3),
        "submissions_per_minute": round(rate, 2),
    }


def grown(unit: Unit, figures: dict[str, float]) -> None:
    sources = [mutant.files[unit.files[0].path] for mutant in unit.mutants]
    steps = [(n, 17, JOBS) for n in (10, 30, 100, 300)] + [(50, n, JOBS) for n in (5, 17, 50, 100)] + [(50, 17, 1)]
    rows = []
    for mutants, tests, jobs in steps:
        took = growth.cost(unit, sources, mutants, tests, jobs)
        each = took.seconds_each * 1000
        cpu = took.cpu_seconds / mutants * 1000
        rows.append(
            [f"{mutants} mutants", str(tests), str(jobs), f"{took.wall_seconds:.2f}", f"{each:.1f}", f"{cpu:.1f}"]
        )
    head = ["", "tests", "jobs", "seconds", "ms each", "CPU ms each"]
    print(table("How cost grows: every suite run to its end", head, rows))


if __name__ == "__main__":
    main()
