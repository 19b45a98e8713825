#!/usr/bin/env python3
"""The rows that bench/api.py measures are such as the master makes, and each of its cases is answered."""
import os
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "lib"), os.path.join(TOP, "bench")]
import api  # noqa: E402
import libapi  # noqa: E402
from cluster import Cluster  # noqa: E402

AS_MADE = {  # what triggers and functions keep: (kept, counted anew)
    "experiment_counts": ("SELECT project_id, owner_id, state, archived, n FROM experiment_counts WHERE n > 0",
                          "SELECT project_id, owner_id, state, archived, count(*) FROM experiments GROUP BY 1, 2, 3, 4"),
    "experiment_sums": ("SELECT experiment_id, trials, checkpoints, bytes FROM experiment_sums",
                        "SELECT e.id, (SELECT count(*) FROM trials WHERE experiment_id = e.id), count(k.uuid), coalesce(sum(k.bytes), 0) FROM experiments e "
                        "LEFT JOIN checkpoints k ON k.experiment_id = e.id AND k.state IN ('COMPLETED', 'PARTIALLY_DELETED') GROUP BY 1"),
    "metric_heads": ("SELECT trial_id, grp, steps FROM metric_heads", "SELECT trial_id, grp, max(steps) FROM metrics WHERE NOT archived GROUP BY 1, 2"),
    "searcher_metric_value": ("SELECT id, searcher_metric_value FROM trials",
                              "SELECT trial_id, (metrics->'validation_metrics'->>'loss')::float8 FROM metrics WHERE grp = 'validation' AND steps = 10000"),
    "latest_value": ("SELECT id, latest_value FROM trials", "SELECT id, number_of(latest_validation->'metrics'->'avgMetrics'->'loss') FROM trials"),
    "closed_batches": ("SELECT id, closed_batches FROM trials", "SELECT trial_id, max(closed_steps) FROM metric_heads GROUP BY 1"),
    "validation": ("SELECT uuid, validation FROM checkpoints", "SELECT uuid, validation_at(trial_id, steps) FROM checkpoints"),
    "best": ("SELECT experiment_id, min(value) FROM experiment_bests GROUP BY 1",
             "SELECT experiment_id, min((metrics->'validation_metrics'->>'loss')::float8) FROM metrics JOIN trials t ON t.id = trial_id WHERE grp = 'validation' GROUP BY 1"),
    "metric_steps": ("SELECT experiment_id, grp, steps, names FROM metric_steps",
                     "SELECT experiment_id, grp, steps, number_names(metrics->metrics_key(grp)) FROM metrics JOIN trials t ON t.id = trial_id WHERE NOT archived"),
    "metric_names": ("SELECT experiment_id, grp, name, trials FROM metric_names",
                     "SELECT experiment_id, g.key, k, count(*) FROM trials, jsonb_each(summary_metrics) g, jsonb_object_keys(g.value) k GROUP BY 1, 2, 3"),
    "trial_blocks": ("SELECT experiment_id, block, trials, hparams, varying, has_metrics FROM trial_blocks WHERE kept",
                     "SELECT experiment_id, id >> 8, count(*)::integer, (array_agg(hparams))[1], NULL::text[], true FROM trials GROUP BY 1, 2"),
    "trial_block_metrics": ("SELECT experiment_id, block, grp, name, mean_n, mean_low FROM trial_block_metrics",
                            "SELECT experiment_id, id >> 8, g.key, m.key, count(*)::integer, min((m.value->>'mean')::float8) FROM trials, jsonb_each(summary_metrics) g, "
                            "jsonb_each(g.value) m GROUP BY 1, 2, 3, 4"),
    "best_trials": ("SELECT experiment_id, trial_id, has_numbers FROM best_trials WHERE NOT is_due", "SELECT id, best_trial_id, true FROM experiments"),
    "best_numbers": ("SELECT experiment_id, grp, name, last, max, odd FROM best_numbers",
                     "SELECT e.id, g.key, m.key, (m.value->>'last')::float8, (m.value->>'max')::float8, NULL::jsonb FROM experiments e JOIN trials t ON t.id = best_trial_id, "
                     "jsonb_each(summary_metrics) g, jsonb_each(g.value) m"),
    "reports of chunks": ("SELECT trial_id, grp, seq, report_steps, report_times, report_values FROM metric_chunks WHERE level = 1",
                          "SELECT trial_id, grp, seq, r.report_steps, r.report_times, r.report_values FROM metric_chunks, "
                          "chunk_made(trial_id, grp, after_steps, last_steps) r WHERE level = 1"),
    "label_counts": ("SELECT label, sum(n) FROM label_counts GROUP BY 1",
                     "SELECT label, count(*)::numeric FROM experiments, jsonb_array_elements_text(labels) l(label) GROUP BY 1"),
    "slot_use_days": ("SELECT day, user_id, workspace_id, labels, round(slot_seconds) FROM slot_use_days",
                      "SELECT (start_time AT TIME ZONE 'UTC')::date, user_id, workspace_id, labels, round(sum(slots * extract(epoch FROM end_time - start_time))) "
                      "FROM slot_uses GROUP BY 1, 2, 3, 4"),
    "slot_uses": ("SELECT allocation_id, slots, start_time, end_time FROM slot_uses", "SELECT id, slots, placed_time, end_time FROM allocations"),
    "closed": ("SELECT trial_id, grp, closed FROM metric_heads WHERE closed > 0",
               "SELECT trial_id, grp, count(*)::integer FROM metric_chunks WHERE level = 1 GROUP BY 1, 2"),
}


def main():
    w = libapi.World(40, 4, 40)
    with Cluster(agents=0) as c:
        c.login()
        api.load_rows(c, w, 40, 1600)
        assert int(c.sql("SELECT count(*) FROM trials")) == w.trials == 196
        assert c.sql(f"SELECT count(*) FROM trials WHERE experiment_id = {w.big_experiment}") == "40"
        for what, (kept, counted) in AS_MADE.items():
            differ = c.sql(f"({kept} EXCEPT {counted}) UNION ALL ({counted} EXCEPT {kept})")
            assert not differ, f"{what} is not as the master makes it:\n{differ[:600]}"
        reports = api.Reports(c, w)
        try:
            with api.Queue(c, w):
                for case in libapi.cases(w):
                    api.ask(c, [case.make() for _ in range(4)], clients=2, seconds=0)
        finally:
            reports.stop()


if __name__ == "__main__":
    main()
