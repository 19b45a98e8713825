"""No report of a trial ends the master: names past the bound are refused to the report that brings them, whatever the
number and order of reports, and the trial then ends as any other. So does one whose rows hold more already."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import paced  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from openapi import Api  # noqa: E402

GROUP = "wide"


def body(trial, steps, names, run):
    return {"metrics": {"trialId": trial, "trialRunId": run, "stepsCompleted": steps,
                        "metrics": {"avgMetrics": {n: 1 for n in names}}}, "group": GROUP}


def running(c):
    """A trial that trains: (experiment, trial, run)."""
    exp = paced.create(c, os.path.join("examples", "digits", "const.yaml"), 200, **{"epochs: 12": "epochs: 4000"})
    wait_until(lambda: c.experiment(exp)["state"] == "STATE_RUNNING" and c.trials(exp), 60, "a trial that runs")
    trial = c.trials(exp)[0]["id"]
    return exp, trial, int(c.sql(f"SELECT run_id FROM trials WHERE id = {trial}"))


def names(start, n=5000):
    return [f"m{i}" for i in range(start, start + n)]


def few(user, trial, run):
    """Fewer reports than a chunk holds: the fifth has the first name too many."""
    for i in range(4):
        user.call("post_metrics", body(trial, 10 + i, names(5000 * i), run), trialId=trial)
    user.refused(400, "different metrics", "post_metrics", body(trial, 14, ["one-more"], run), trialId=trial)
    user.call("post_metrics", body(trial, 15, names(0), run), trialId=trial)  # known ones


def late(user, trial, run):
    """Steps of before, and more metrics of a step: neither comes by a chunk's end."""
    user.refused(400, "different metrics", "post_metrics", body(trial, 5, ["late"], run), trialId=trial)
    user.refused(400, "different metrics", "post_metrics", body(trial, 12, ["again"], run), trialId=trial)


def ended(c, exp, trial):
    c.api("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")
    c.stop("master")
    c.start_master()
    c.login()
    assert c.experiment(exp)["state"] == "STATE_CANCELED"
    return Api(c.port, c.token).call("get_trial", trialId=trial)["trial"]["summaryMetrics"]


def main():
    with Cluster(agents=1) as c:
        c.login()
        user = Api(c.port, c.token)
        exp, trial, run = running(c)
        few(user, trial, run)
        late(user, trial, run)
        assert len(ended(c, exp, trial)[GROUP]) == 20000
        exp, trial, run = running(c)  # rows of before the bound: more names than it allows, their chunk still open
        c.sql(f"INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, end_time) SELECT {trial}, '{GROUP}', {run}, 9, "
              "jsonb_build_object('avg_metrics', jsonb_object_agg('m' || i, 1)), now() FROM generate_series(1, 21000) i;"
              f"INSERT INTO metric_heads (trial_id, grp, run_id, steps, tail) VALUES ({trial}, '{GROUP}', {run}, 9, 1)")
        user = Api(c.port, c.token)
        user.refused(400, "different metrics", "post_metrics", body(trial, 10, ["one-more"], run), trialId=trial)
        assert len(ended(c, exp, trial)[GROUP]) == 21000
    print("test_refused_rows: passed")


if __name__ == "__main__":
    main()
