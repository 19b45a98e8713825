-- The rows of bench/api.py: :experiments experiments of :per trials, each with :rows training reports in chunks,
-- ten validations, an allocation and a checkpoint. Values differ from report to report.
SET session_replication_role = replica; -- no triggers: row by row they take minutes
INSERT INTO experiments (id, job_id, owner_id, state, start_time, end_time, progress, name, description, labels, config,
                         original_config, searcher_metric, best_trial_id, best_metric)
    SELECT e, 'job-' || e, 1, CASE WHEN e % 7 = 0 THEN 'ERROR' ELSE 'COMPLETED' END, now() - e * interval '1 minute',
           now() - e * interval '30 seconds', 1, 'experiment-' || e, 'number ' || e, '["bench", "mnist"]', :'config', 'name: x',
           'loss', (e - 1) * :per + 1, 0.1
    FROM generate_series(1, :experiments) e;
INSERT INTO experiment_counts SELECT project_id, owner_id, state, archived, count(*) FROM experiments GROUP BY 1, 2, 3, 4;
INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time, end_time, runner_state, progress,
                    summary_metrics, latest_validation, best_validation, searcher_metric_value)
    SELECT t, (t - 1) / :per + 1, 'r' || t, ((t - 1) / :per + 1) || '.r' || t, 'COMPLETED', 1,
           '{"learning_rate": 0.001, "global_batch_size": 64, "dropout": 0.25}', now() - t * interval '6 seconds', now(), '', 1,
           '{"avg_metrics": {"loss": {"type": "number", "count": 100, "min": 0, "max": 1, "sum": 50, "mean": 0.5, "last": 0.4}, "accuracy": {"type": "number", "count": 100, "min": 0, "max": 1, "sum": 50, "mean": 0.5, "last": 0.4}}, "validation_metrics": {"loss": {"type": "number", "count": 10, "min": 0, "max": 1, "sum": 5, "mean": 0.5, "last": 0.4}}}',
           v.doc, v.doc, 0.4
    FROM generate_series(1, :experiments * :per) t, (SELECT '{"endTime": "2026-01-02T03:04:05.000000Z", "metrics": {"avgMetrics": {"loss": 0.4, "accuracy": 0.9}, "batchMetrics": []}, "numInputs": 0, "totalBatches": 10000}'::jsonb doc) v;
SELECT metric_partitions(p) FROM generate_series(0, :experiments * :per, 10000) p;
INSERT INTO allocations (id, task_id, experiment_id, trial_id, run_id, state, slots, start_time, end_time)
    SELECT task_id || '.1', task_id, experiment_id, id, 1, 'TERMINATED', 1, start_time, end_time FROM trials;
INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, allocation_id, run_id, state, steps, report_time, metadata, resources, bytes)
    SELECT md5(id::text)::uuid, experiment_id, id, task_id, task_id || '.1', 1, 'COMPLETED', 10000, now(), '{"steps_completed": 10000}',
           '{"state_dict.pth": 1000, "metadata.json": 10}', 1010 FROM trials;
INSERT INTO metrics (trial_id, grp, steps, run_id, end_time, metrics)
    SELECT t, 'training', s * 100, 1, now(), jsonb_build_object('avg_metrics', jsonb_build_object('loss', (hashint4(t + s * 7919) & 65535) / 65536::float8,
           'accuracy', (hashint4(t * 31 + s) & 65535) / 65536::float8))
    FROM generate_series(1, :experiments * :per) t, generate_series(1, :rows) s;
INSERT INTO metrics (trial_id, grp, steps, run_id, end_time, metrics)
    SELECT t, 'validation', s * 1000, 1, now(), jsonb_build_object('validation_metrics', jsonb_build_object('loss', (hashint4(t + s) & 65535) / 65536::float8))
    FROM generate_series(1, :experiments * :per) t, generate_series(1, 10) s;
INSERT INTO metric_heads (trial_id, grp, run_id, steps, tail)
    SELECT t, g, 1, :rows * 100, 1 FROM generate_series(1, :experiments * :per) t, unnest(ARRAY['training', 'validation']) g;
INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc)
    SELECT t, 'training', 1, c, coalesce((c * 16) * 100, -1), least(c * 16 + 16, :rows) * 100, least(16, :rows - c * 16), d.doc
    FROM generate_series(1, :experiments * :per) t, generate_series(0, (:rows - 1) / 16) c,
         LATERAL (SELECT jsonb_object_agg(m, jsonb_build_array(16, 8, jsonb_build_array(0.01, c * 1600 + 300, 1767323045),
                  jsonb_build_array(0.99, c * 1600 + 700, 1767323045), 0.5)) doc FROM unnest(ARRAY['loss', 'accuracy']) m) d;
UPDATE metric_heads SET tail = 0, closed = (:rows - 1) / 16 + 1, closed_steps = steps WHERE grp = 'training';
UPDATE metric_heads SET tail = 0, closed = 0, closed_steps = steps WHERE grp = 'validation';
-- One trial whose metric has :long reports: the last one.
INSERT INTO metrics (trial_id, grp, steps, run_id, end_time, metrics)
    SELECT :experiments * :per, 'long', s, 1, now(), jsonb_build_object('avg_metrics', jsonb_build_object('loss', (hashint4(s) & 65535) / 65536::float8))
    FROM generate_series(1, :long) s;
INSERT INTO metric_heads (trial_id, grp, run_id, steps, closed, closed_steps) VALUES (:experiments * :per, 'long', 1, :long, :long / 16, :long / 16 * 16);
INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc)
    SELECT :experiments * :per, 'long', l, s, s * w, s * w + w, w, jsonb_build_object('loss', jsonb_build_array(w, w / 2,
           jsonb_build_array(0.01, s * w + 1, 1767323045), jsonb_build_array(0.99, s * w + w - 1, 1767323045), 0.5))
    FROM generate_series(1, 12) l, LATERAL (SELECT (16 * 4 ^ (l - 1))::integer w) x, generate_series(0, :long / w - 1) s;
