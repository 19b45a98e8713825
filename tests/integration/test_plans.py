#!/usr/bin/env python3
"""How many pages PostgreSQL reads for each reading route with each of its filters and orders, as pg_stat_statements counts them,
over the rows of bench/api_rows.sql at a small scale. No time is looked at: a plan that looks up one by one what an index or one
pass would find reads pages for each row that it goes over, and shows in their number at any size.

usage: test_plans.py [TEXT]    only the cases whose name has TEXT in it; all numbers are printed
"""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "lib"), os.path.join(TOP, "bench")]
import api  # noqa: E402
import libapi  # noqa: E402
from cluster import Cluster  # noqa: E402

EXPERIMENTS, PER, BIG, LIVE = 200, 4, 400, 20
MOST = 380  # pages of a case that is not below
MANY = {  # the beginning of a case's name, the longest counts: pages, and what is on them
    f"exp_trials_sample of {BIG} trials": (1700, "25 trials of all, with a point for each chunk"),
    f"exp_trials_snapshot of {BIG} trials batches": (650, "a report of each trial"),
    f"get_experiment_trials of {BIG} trials": (580, "the trials' heap, 330 pages, and the page's tails"),
    f"get_experiment_trials of {BIG} trials sortBy=SORT_BY_STATE": (750, "the same, and the runs of the experiment"),
    f"exp_metric_batches of {BIG} trials": (200, "the steps, and the tails of those that run"),
    f"preview_gc of {BIG} trials": (330, "each checkpoint"),
    "search_experiments sort": (1550, "the best trial of each experiment"),
    "search_experiments": (690, "the sums of each experiment"),
    "group_experiments metrics": (850, "the sums of each block of trials, and of its metric"),
    "group_experiments by": (850, "the sums of each block, and the first blocks of each of 43 groups"),
    "group_experiments": (200, "the sums of each block of trials"),
    "resource_allocation_aggregated": (1050, "what each of 1,200 runs had"),
    "get_experiments sortBy=SORT_BY_NUM_TRIALS": (640, "the sums of each experiment"),
    "get_experiments sortBy=SORT_BY_CHECKPOINT": (640, "the sums of each experiment"),
    "get_metrics trialIds": (800, "each report of ten trials"),
    "get_training_metrics trialIds": (650, "each report of ten trials"),
    "get_unknown_checkpoints": (600, "200 of them, each looked for among the known"),
    "compare_trials": (700, "the chunks of ten trials, or of a long one"),
}


def bound(name):
    found = [start for start in MANY if name.startswith(start)]
    return MANY[max(found, key=len)][0] if found else MOST


def pages(c, case):
    """Read for one question that nobody asked before."""
    c.forget_answers()
    c.sql("SELECT pg_stat_statements_reset()")
    api.ask(c, [case.make()], clients=1, seconds=0)
    return int(c.sql("SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0) FROM pg_stat_statements WHERE query !~ 'pg_stat_statements'"))


def fewest_pages(c, case, most):
    """Once in a few runs a question reads far more than in the others, and what it was planned by is not known: over the bound it is
    asked again, all that it read is printed, and the least counts."""
    read = [pages(c, case)]
    while read[-1] > most and len(read) < 5:
        read.append(pages(c, case))
    if len(read) > 1:
        print(f"{case.name}: at most {most} pages, read {read}")
    return min(read)


def pages_of_all(c, cases):
    for case in cases:  # the first question reads the catalogue too, and makes a plan
        api.ask(c, [case.make() for _ in range(4)], clients=4, seconds=0)
    return [(case, fewest_pages(c, case, bound(case.name))) for case in cases]


def run_again(c, w):
    """Some trials of the large experiment run, and have reported once since their last chunk."""
    first = w.trials - w.big + 1
    c.sql(f"UPDATE trials SET run_id = run_id + 1, state = 'ACTIVE' WHERE id BETWEEN {first} AND {first + LIVE - 1}")
    for trial in range(first, first + LIVE):
        report = {"trialId": trial, "trialRunId": 2, "stepsCompleted": 50000, "metrics": {"avgMetrics": {"loss": 0.5, "accuracy": 0.5}}}
        c.api("POST", f"/trials/{trial}/metrics", {"metrics": report, "group": "training"})


def each_with_each(c):
    """Before there are statistics of the numbers that searches sort by, as after an upgrade, the planner believes in one: they are found by
    a hash nevertheless. Few experiments of a project are not looked for among all, also by who groups them."""
    tables = "('best_numbers'::regclass, 'best_trials'::regclass)"
    c.sql(f"DELETE FROM pg_statistic WHERE starelid IN {tables}; UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid IN {tables}")
    order = '[{"kind": "metric", "group": "validation", "name": "loss", "stat": "last", "down": false}]'
    found = c.sql(f"""SELECT search_sql('{{"where": null, "leaves": [], "order": {order}, "archived": true}}')""")
    plan = c.sql("EXPLAIN SELECT e.id " + found.replace("$2", f"'{order}'::jsonb").replace("$3", "0"))
    believed = [int(n) for n in re.findall(r"Append .* rows=(\d+)", plan)]  # a nested loop is worth it for one or two
    assert len(believed) == 2 and min(believed) >= 1000, "each experiment may be compared with each number:\n" + plan
    assert "enable_sort=on" in c.sql("SELECT proconfig FROM pg_proc WHERE proname = 'find_experiments_page'")


def main(only):
    w = libapi.World(EXPERIMENTS, PER, BIG)
    # Whether autovacuum has looked at a table by then depends on how slow the machine is.
    with Cluster(agents=0, master_args=["--reuse-answers", "false"],
                 pg_args=["shared_preload_libraries=pg_stat_statements", "autovacuum=off"]) as c:
        c.login()
        api.load_rows(c, w, 40, 16000)
        c.sql("CREATE EXTENSION pg_stat_statements")
        with api.Queue(c, w):
            cases = [case for case in libapi.cases(w) if only in case.name]
            read = {case.name: n for case, n in pages_of_all(c, cases)}
            run_again(c, w)
            live = [case for case in cases if case.name.startswith("exp_metric_")]
            read |= {f"{case.name}, while some run": n for case, n in pages_of_all(c, live)}
        each_with_each(c)
    if only:
        print("\n".join(f"{n:6} {name}" for name, n in read.items()))
    over = [f"{name}: {n} pages, at most {bound(name)}" for name, n in read.items() if n > bound(name)]
    assert not over, "these read more than they need:\n" + "\n".join(over)
    print(f"test_plans: {len(read)} cases passed")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
