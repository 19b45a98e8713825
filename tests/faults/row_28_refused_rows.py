#!/usr/bin/env python3
"""Row 28: PostgreSQL refuses rows of the core at random: of trials, allocations, experiments, searches, the timeline, logs.

A trigger on each of these tables raises for a row in a few, whatever is in it, and for every row of one experiment in five, with
codes that blame the data, the moment or nobody; with --all it also sleeps for longer than a statement may take, and says for ever that memory is missing. Meanwhile experiments are created, paused and activated; one of them is put under no such trigger.
The master must not end, nor be replaced; what has ended in ERROR must say so in its trials' logs; that one must train on; and
when the triggers are gone, all that is left completes, also under the next master.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import TERMINAL, ApiError, Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from training import Training  # noqa: E402

TABLES = {"trials": "experiment_id", "allocations": "experiment_id", "experiments": "id", "search_events": "experiment_id",
          "search_snapshots": "experiment_id", "trial_timeline": "trial_id", "task_logs": None}
GRID = os.path.join("tests", "faults", "grid.yaml")
REFUSAL = "no luck this time"
CODES = "ARRAY['P0001', '22023', '23514', '54000', 'XX000', '0A000', '2F005', '55P03']"
ALWAYS = f"""IF new.experiment_id % 5 = 0 THEN
                RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = CASE WHEN new.experiment_id % 2 = 0 THEN 'XX000' ELSE '0A000' END;
            END IF;"""
# The patience doubles with each row that was taken out: what takes longest comes first.
NEVER = {"53200": f"RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = '53200'", "57014": "PERFORM pg_sleep(100)"}


def refuse(c, spared, one_in):
    """spared: an experiment, whose only trial has the same number."""
    for table, key in TABLES.items():
        mine = f"new.{key} <> {spared}" if key else f"new.task_id NOT LIKE '{spared}.%' AND new.log NOT LIKE '%{REFUSAL}%'"  # the words are looked for
        c.sql(f"""CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF {mine} AND random() * {one_in} < 1 THEN
                RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = ({CODES})[1 + floor(random() * 8)];
            END IF;
            {ALWAYS if table == "trials" else ""}
            RETURN new;
        END $$; CREATE TRIGGER refuse_{table} BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_{table}()""")


def allow(c):
    for table in TABLES:
        c.sql(f"DROP TRIGGER refuse_{table} ON {table}; DROP FUNCTION refuse_{table}()")


def refusals(c):
    return open(c.path("master.log")).read().count("the database refused")


def try_to(call, row):
    """Its answer; None where the database's words are the answer, or there is nothing to do it to any more."""
    try:
        return call()
    except ApiError as e:
        row.check(e.status in (400, 404, 409, 503), f"an answer {e}")
        return None


def busy(c, row, wanted):
    """Creates, pauses and activates until that many rows were refused; the experiments that were acknowledged."""
    made, before = [], refusals(c)
    while refusals(c) < before + wanted:
        exp = try_to(lambda: paced.create(c, GRID, 5, **{"batches: 1000": "batches: 60"}), row)
        made += [exp] if exp else []
        for verb in ("pause", "activate"):
            if made:
                try_to(lambda: c.api("POST", f"/experiments/{row.rng.choice(made)}/{verb}"), row)
    return made


def never(c, row, code):
    """The rows of somebody's trials take for ever, as it seems: the experiment ends, and nobody else's."""
    exp = paced.create(c, GRID, 5, **{"batches: 1000": "batches: 60000"})
    wait_until(lambda: c.experiment(exp)["state"] == "STATE_RUNNING" and c.trials(exp), 60, "a trial that runs")
    c.sql(f"""CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {NEVER[code]}; RETURN new; END $$;
        CREATE TRIGGER never BEFORE UPDATE ON trials FOR EACH ROW WHEN (new.experiment_id = {exp} AND new.state <> old.state) EXECUTE FUNCTION never()""")
    try_to(lambda: c.api("POST", f"/experiments/{exp}/pause"), row)
    c.wait(exp, "STATE_ERROR", 1800)
    c.sql("DROP TRIGGER never ON trials; DROP FUNCTION never()")
    row.fault(f"a row that always fails with {code}")


def said(c, row, exp):
    """It is in ERROR, and why."""
    logs = "".join(c.logs(t["id"]) for t in c.trials(exp))
    states = {t["state"] for t in c.trials(exp)}
    row.check(states <= set(TERMINAL), f"experiment {exp} is over, its trials are {states}")
    return REFUSAL in logs


def settled(c, row, exp):
    state = c.experiment(exp)["state"]
    if state == "STATE_PAUSED":  # an activation was refused, while a batch waited
        try_to(lambda: c.api("POST", f"/experiments/{exp}/activate"), row)
    return state in TERMINAL


def run_round(row, c):
    t = Training(c, row)
    refuse(c, t.exp, 12)
    pid = c.pid("master")
    made = busy(c, row, 25 if row.all else 8)
    row.fault(f"{refusals(c)} refused rows")
    row.check(c.procs["master"].poll() is None and c.pid("master") == pid, "the master ended")
    allow(c)
    for code in NEVER if row.all else ():
        never(c, row, code)
    wait_until(lambda: all(settled(c, row, e) for e in made), 200, "all to end")
    parked = [e for e in made if c.experiment(e)["state"] == "STATE_ERROR"]
    row.check(not parked or any(said(c, row, e) for e in parked), "no log has the database's words")
    t.goes_on()
    c.stop("master", signal.SIGKILL)
    c.start_master()
    c.login()
    row.check(all(settled(c, row, e) for e in made), "the next master has something of it again")
    t.end()


def main():
    row = Row(28, __doc__, rounds=1, rounds_all=5)
    for n in row.numbers():
        with Cluster(agents=1, slots=4) as c:
            c.login()
            row.attempt(n, run_round, row, c)
    sys.exit(row.finish())


if __name__ == "__main__":
    main()
