"""Nothing that a trial, a person or a row can make the database refuse ends the master.

Names of metrics past the bound are refused to the report that brings them, whatever the number and order of reports, and
the trial then ends as any other. So does one whose rows hold more already. A row of the core that is refused all the same
ends its own trial or experiment in ERROR, with the database's words in the log; the others and the master go on."""
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import paced  # noqa: E402
from cluster import ApiError, Cluster, wait_until  # noqa: E402
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


REFUSE = """CREATE FUNCTION refuse_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF {when} THEN RAISE EXCEPTION 'no {name} like this' USING ERRCODE = '{code}'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse_{name} BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_{name}()"""


def refuse(c, name, table, when, code="P0001"):
    c.sql(REFUSE.format(name=name, table=table, when=when, code=code))


def stays(c, exp, trial, pid):
    """The other one trains on, under the same master, and every slot that was given up is free."""
    assert c.experiment(exp)["state"] == "STATE_RUNNING", "what was not refused has ended"
    assert c.procs["master"].poll() is None and c.pid("master") == pid
    since = c.sql(f"SELECT count(*) FROM metrics WHERE trial_id = {trial}")
    wait_until(lambda: c.sql(f"SELECT count(*) FROM metrics WHERE trial_id = {trial}") != since, 60, "more metrics")
    wait_until(lambda: c.sql("SELECT count(*) FROM allocations WHERE state <> 'TERMINATED'") == "1", 60, "the end of runs")


def row_of_a_trial(c, user, pid, other):
    exp, trial, run = running(c)
    refuse(c, "trial", "trials", f"NEW.id = {trial}")  # also what would only end it
    user.call("pause_experiment", id=exp)  # the experiment's own row is taken
    c.wait(exp, "STATE_ERROR", 60)
    assert "no trial like this" in c.logs(trial)
    assert [t["state"] for t in c.trials(exp)] == ["STATE_ERROR"]
    assert c.sql("SELECT tgenabled FROM pg_trigger WHERE tgname = 'refuse_trial'") == "O"
    stays(c, *other, pid)


def doubted(c, pid, other):
    """What no SQLSTATE blames on the data: a value of over 1 GB is XX000, and 0A000 is asked for again as a rule."""
    exps = {code: running(c) for code in ("XX000", "0A000")}
    for code, (exp, trial, run) in exps.items():
        refuse(c, f"likely_{code}", "trials", f"NEW.id = {trial}", code)
        c.api("POST", f"/experiments/{exp}/pause")
        c.wait(exp, "STATE_ERROR", 60)
        assert f"no likely_{code} like this" in c.logs(trial)
    stays(c, *other, pid)


def row_of_an_experiment(c, user, pid, other):
    exp, trial, run = running(c)
    refuse(c, "experiment", "experiments", f"NEW.id = {exp}")
    user.refused(400, "no experiment like this", "pause_experiment", id=exp)
    wait_until(lambda: c.experiment(exp)["state"] == "STATE_ERROR", 60, "its end")
    assert "no experiment like this" in c.logs(trial)
    stays(c, *other, pid)


def first_row(c, pid, other):
    """A creation is refused with the words, and leaves nothing."""
    refuse(c, "beginner", "trials", "NEW.hparams->>'dropout' = '0.125'")
    try:
        paced.create(c, os.path.join("examples", "digits", "const.yaml"), 200, **{"dropout: 0.25": "dropout: 0.125"})
        raise AssertionError("it was created")
    except ApiError as e:
        assert e.status == 400 and "no beginner like this" in e.text, e.text
    assert c.sql("SELECT count(*) FROM experiments WHERE config->'hyperparameters'->'dropout'->>'val' = '0.125'") == "0"
    stays(c, *other, pid)


def at_a_start(c, other):
    """What the next master has to write first is refused: no restart meets it again."""
    exp, trial, run = running(c)
    c.stop("master", signal.SIGKILL)
    refuse(c, "return", "allocations", f"NEW.trial_id = {trial}", "XX000")
    c.stop("agent-0", signal.SIGKILL)
    c.end_tasks()
    c.start_master()
    c.login()
    pid = c.pid("master")
    c.start_agent(0)
    c.wait(exp, "STATE_ERROR", 60)
    wait_until(lambda: c.experiment(other[0])["state"] == "STATE_RUNNING", 60, "the other's next run")
    assert "no return like this" in c.logs(trial)
    stays(c, *other, pid)


def unreadable(c, other):
    """Rows that a start cannot make sense of: their experiment ends, and the start goes on."""
    exps = [running(c)[0] for _ in range(3)]
    c.stop("master", signal.SIGKILL)
    # What it had sent may still be written, and would go over what is changed here.
    others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    wait_until(lambda: c.sql(others) == "0", 30, "the end of the killed master's sessions")
    c.sql(f"UPDATE experiments SET core = '[]' WHERE id = {exps[0]}; "
          f"UPDATE trials SET hparams = '[]' WHERE experiment_id = {exps[1]}; "
          f"UPDATE allocations SET core = core || '{{\"containers\": []}}' WHERE experiment_id = {exps[2]}; "
          "INSERT INTO agent_settings VALUES ('nobody', true, false, '7')")
    c.start_master()
    c.login()
    for exp in exps:
        assert c.experiment(exp)["state"] == "STATE_ERROR"
        assert [t["state"] for t in c.trials(exp)] == ["STATE_ERROR"]
    log = open(c.path("master.log")).read()
    assert f"experiment {exps[0]} ends in ERROR" in log and "agent nobody are left out" in log
    c.wait_agents(1)
    wait_until(lambda: c.experiment(other[0])["state"] == "STATE_RUNNING", 60, "the other's run")
    stays(c, *other, c.pid("master"))


def core_rows():
    with Cluster(agents=1, slots=4) as c:
        c.login()
        user, pid = Api(c.port, c.token), c.pid("master")
        other = running(c)[:2]
        row_of_a_trial(c, user, pid, other)
        row_of_an_experiment(c, user, pid, other)
        doubted(c, pid, other)
        first_row(c, pid, other)
        at_a_start(c, other)
        unreadable(c, other)


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
    core_rows()
    print("test_refused_rows: passed")


if __name__ == "__main__":
    main()
