-- The rows of bench/api.py: :experiments experiments, of which the last has :big trials and each other one :per; each trial
-- with :rows training reports of two metrics in chunks, ten validations, an allocation, a checkpoint or three, log lines and
-- a timeline. Values differ from report to report. As the triggers would have made it (tests/integration/test_bench_rows.py).
SET session_replication_role = replica; -- no triggers: row by row they take minutes
SET synchronous_commit = off;
SET maintenance_work_mem = '512MB';
INSERT INTO users (id, username, display_name, admin, active) SELECT 1000 + u, 'user-' || u, 'User ' || u, false, u % 9 <> 0 FROM generate_series(1, 20) u;
INSERT INTO workspaces (id, name, user_id) SELECT 1000 + w, 'workspace-' || w, 1000 + w FROM generate_series(1, 4) w;
INSERT INTO projects (id, workspace_id, name, user_id) SELECT 1000 + p, 1001 + p % 4, 'project-' || p, 1000 + p FROM generate_series(1, 12) p;
INSERT INTO groups (id, name) SELECT 1000 + g, 'group-' || g FROM generate_series(1, 20) g;
INSERT INTO group_members SELECT 1000 + g, 1001 + (g + u) % 20 FROM generate_series(1, 20) g, generate_series(1, 5) u;
INSERT INTO role_assignments (role_id, user_id, group_id, workspace_id)
    SELECT 2, 1000 + u, NULL, 1001 + u % 4 FROM generate_series(1, 20) u UNION ALL SELECT 5, NULL, 1000 + g, 1001 + g % 4 FROM generate_series(1, 20) g;
INSERT INTO templates (name, config) SELECT 'template-' || t, '{"max_restarts": 3}' FROM generate_series(1, 20) t;
INSERT INTO experiments (id, job_id, owner_id, project_id, parent_id, state, archived, start_time, end_time, progress, name, description,
                         labels, config, original_config, searcher_metric, best_trial_id, best_metric, collected_at, model_def)
    SELECT e, 'job-' || e, 1001 + e * 7 % 20, 1001 + e * 5 % 12, CASE WHEN e % 5 = 0 THEN e / 2 END,
           CASE WHEN e % 7 = 0 THEN 'ERROR' WHEN e % 11 = 0 THEN 'CANCELED' ELSE 'COMPLETED' END, e % 50 = 0,
           t.start, t.start + (e * 37 % 5000) * interval '7 seconds', (e % 101) / 100.0, 'net ' || e * 17 % 100 || ' of ' || e, 'number ' || e,
           jsonb_build_array('label-' || e % 40, 'team-' || e % 3), :'config', 'name: x', 'loss', (e - 1) * :per + 1,
           (hashint4(e) & 65535) / 65536::float8, t.start + interval '1 day', decode(:'model_def', 'base64')
    FROM generate_series(1, :experiments) e, LATERAL (SELECT timestamptz '2026-01-01' + (e * 7919 % 10007) * interval '1 minute' start) t;
INSERT INTO experiment_counts SELECT project_id, owner_id, state, archived, count(*) FROM experiments GROUP BY 1, 2, 3, 4;
INSERT INTO label_counts SELECT project_id, l.label, count(*) FROM experiments, jsonb_array_elements_text(labels) l(label) GROUP BY 1, 2;
CREATE TEMP TABLE made AS SELECT t, least((t - 1) / :per + 1, :experiments) e, least((t - 1) / :per + 1, :experiments) || '.r' || t task,
    timestamptz '2026-01-01' + t * interval '6 seconds' AS start FROM generate_series(1, (:experiments - 1) * :per + :big) t;
ANALYZE made;
INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, restarts, hparams, start_time, end_time, runner_state, progress,
                    summary_metrics, closed_batches, latest_validation, best_validation, latest_value, searcher_metric_value)
    SELECT t, e, 'r' || t, task, CASE WHEN t % 13 = 0 THEN 'ERROR' WHEN t % 17 = 0 THEN 'CANCELED' ELSE 'COMPLETED' END, 1, t % 4,
           '{"learning_rate": 0.001, "global_batch_size": 64, "dropout": 0.25}', start, start + (t % 977) * interval '1 minute', '', 1,
           '{"avg_metrics": {"loss": {"type": "number", "count": 100, "min": 0, "max": 1, "sum": 50, "mean": 0.5, "last": 0.4}, "accuracy": {"type": "number", "count": 100, "min": 0, "max": 1, "sum": 50, "mean": 0.5, "last": 0.4}}, "validation_metrics": {"loss": {"type": "number", "count": 10, "min": 0, "max": 1, "sum": 5, "mean": 0.5, "last": 0.4}}}',
           greatest(:rows * 100, 10000), v.doc, v.doc, v.x, v.x
    FROM made, LATERAL (SELECT (hashint4(t + 10) & 65535) / 65536::float8 x) x, LATERAL (SELECT x, jsonb_build_object('endTime', '2026-01-02T03:04:05.000000Z',
        'metrics', jsonb_build_object('avgMetrics', jsonb_build_object('loss', x), 'batchMetrics', '[]'::jsonb), 'numInputs', 0, 'totalBatches', 10000) doc) v;
INSERT INTO metric_names (experiment_id, grp, name, trials)
    SELECT e, n.grp, n.name, count(*) FROM made, (VALUES ('avg_metrics', 'loss'), ('avg_metrics', 'accuracy'), ('validation_metrics', 'loss')) n(grp, name) GROUP BY 1, 2, 3;
INSERT INTO trial_blocks (experiment_id, block) SELECT DISTINCT e, t >> 8 FROM made;
SELECT keep_trial_block(experiment_id, block) FROM trial_blocks;
INSERT INTO best_trials (experiment_id) SELECT generate_series(1, :experiments);
SELECT keep_best_trial(experiment_id) FROM best_trials;
INSERT INTO allocations (id, task_id, experiment_id, trial_id, run_id, state, slots, start_time, placed_time, end_time)
    SELECT task || '.1', task, e, t, 1, 'TERMINATED', 1, start, start, start + interval '10 minutes' FROM made;
INSERT INTO slot_uses (allocation_id, experiment_id, user_id, workspace_id, kind, labels, slots, resource_pool, start_time, end_time)
    SELECT a.id, e.id, e.owner_id, p.workspace_id, a.kind, e.labels, a.slots, a.resource_pool, a.placed_time, a.end_time
    FROM allocations a JOIN experiments e ON e.id = a.experiment_id JOIN projects p ON p.id = e.project_id;
INSERT INTO slot_use_days (day, user_id, workspace_id, labels, resource_pool, slot_seconds)
    SELECT d.day, user_id, workspace_id, labels, resource_pool, sum(slots * d.seconds)
    FROM slot_uses, use_by_day(start_time, end_time, '-infinity', 'infinity') d GROUP BY 1, 2, 3, 4, 5;
INSERT INTO accelerators (allocation_id, container_id, task_id, node_name, accelerator_type, accelerator_uuids)
    SELECT task || '.1', 'container-' || t, task, 'node-' || t % 9, 'cpu', '["cpu-0"]' FROM made;
INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, allocation_id, run_id, state, steps, report_time, metadata, resources, bytes)
    SELECT CASE n WHEN 0 THEN '00000000-0000-4000-8000-' ELSE '00000000-0000-4000-800' || n || '-' END || lpad(t::text, 12, '0'), e, t, task, task || '.1', 1,
           CASE WHEN n > 0 AND t % 2 = 0 THEN 'DELETED' ELSE 'COMPLETED' END, 10000 - n * 1000, start + (t * 7 % 991) * interval '1 second', '{"steps_completed": 10000}',
           '{"state_dict.pth": 1000, "metadata.json": 10}', 1010 + t % 1000
    FROM made, generate_series(0, CASE WHEN e % 10 = 0 THEN 2 ELSE 0 END) n;
INSERT INTO store_looks (place, asked_at, done_at) VALUES ('/tmp', '2026-01-09', '2026-01-09');
INSERT INTO left_behind (uuid, place, is_aside, modified, uid, task_id, metadata, resources, bytes)
    SELECT '00000000-0000-4000-8009-' || lpad(b::text, 12, '0'), '/tmp', b % 5 = 0, timestamptz '2026-01-02' + b * interval '1 minute', 1000, '1.r' || b,
           '{"steps_completed": 100}', '{"state_dict.pth": 1000, "metadata.json": 10}', 1010 FROM generate_series(1, 200) b;
INSERT INTO page_views (id, user_id, name, address, workspace_id)
    SELECT 1000 + v, 1001 + v % 20, 'view-' || v, '/det/experiments?search=net+' || v, 1001 + v % 4 FROM generate_series(1, 200) v;
INSERT INTO models (id, name, description, notes, labels, metadata, workspace_id, user_id, last_version)
    SELECT 1000 + m, 'model-' || m, 'number ' || m, '', jsonb_build_array('label-' || m % 7), '{"k": 1}', 1001 + m % 4, 1000 + m, 5 FROM generate_series(1, 20) m;
INSERT INTO model_versions (model_id, version, checkpoint_uuid, user_id, name, comment, notes, labels, metadata)
    SELECT 1000 + m, v, '00000000-0000-4000-8000-' || lpad((m * 5 + v - 5)::text, 12, '0'), 1000 + m, '', '', '', '[]', '{}'
    FROM generate_series(1, 20) m, generate_series(1, 5) v;
INSERT INTO experiment_sums SELECT e, t.n, coalesce(c.n, 0), coalesce(c.bytes, 0) FROM (SELECT e, count(*) n FROM made GROUP BY e) t
    LEFT JOIN (SELECT experiment_id e, count(*) n, sum(bytes) bytes FROM checkpoints WHERE state = 'COMPLETED' GROUP BY 1) c USING (e);
INSERT INTO trial_timeline (trial_id, at_us, run_id, node, kind, duration_us, detail)
    SELECT t, 1767225600000000 + t * 6000000::bigint + k * 1000000, 1, -1, kind, 0, '' FROM made, unnest(ARRAY['queued', 'assigned', 'running', 'ended']) WITH ORDINALITY x(kind, k);
INSERT INTO task_logs (task_id, allocation_id, agent_id, container_id, rank_id, level, stdtype, source, time, log, log_offset)
    SELECT task, task || '.1', 'agent-' || l % 4, 'container-1', l % 4, 1 + l % 5, CASE l % 2 WHEN 0 THEN 'stdout' ELSE 'stderr' END, 'trial',
           timestamptz '2026-01-01' + l * interval '60 seconds', 'batch ' || l || ' of trial ' || t || E': loss 0.5\n', l
    FROM made, generate_series(1, CASE t WHEN (:experiments - 1) * :per + :big THEN :long / 10 ELSE 10 END) l;
INSERT INTO profiler_metrics (trial_id, labels, batch)
    SELECT t, jsonb_build_object('trialId', t, 'name', n, 'agentId', 'agent-0', 'gpuUuid', '', 'metricType', 'PROFILER_METRIC_TYPE_SYSTEM'),
           '{"values": [1, 2, 3], "batches": [1, 2, 3], "timestamps": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"]}'
    FROM made, unnest(ARRAY['gpu_util', 'cpu_util']) n WHERE t % 10 = 0;
SELECT metric_partitions(p) FROM generate_series(0, (SELECT max(t) FROM made), 10000) p;
INSERT INTO metrics (trial_id, grp, steps, run_id, end_time, metrics)
    SELECT t, 'training', s * 100, 1, start + s * interval '1 second', jsonb_build_object('avg_metrics', jsonb_build_object(
           'loss', (hashint4(t + s * 7919) & 65535) / 65536::float8, 'accuracy', (hashint4(t * 31 + s) & 65535) / 65536::float8))
    FROM made, generate_series(1, :rows) s
    UNION ALL SELECT t, 'validation', s * 1000, 1, start + (t % 97 + s * 100) * interval '1 second',
           jsonb_build_object('validation_metrics', jsonb_build_object('loss', (hashint4(t + s) & 65535) / 65536::float8))
    FROM made, generate_series(1, 10) s;
UPDATE checkpoints c SET validation = m.metrics->'validation_metrics' FROM metrics m
    WHERE m.trial_id = c.trial_id AND m.grp = 'validation' AND m.steps = c.steps;
ANALYZE; -- or it reads all of each partition for every experiment
SELECT rebuild_bests(e, 'loss', true, '-infinity') FROM generate_series(1, :experiments) e;
INSERT INTO metric_heads (trial_id, grp, run_id, steps, tail, closed, closed_steps)
    SELECT t, 'training', 1, :rows * 100, 0, (:rows - 1) / 16 + 1, :rows * 100 FROM made
    UNION ALL SELECT t, 'validation', 1, 10000, 0, 0, 10000 FROM made;
INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc, report_steps, report_times, report_values)
    SELECT t, 'training', 1, c, coalesce((c * 16) * 100, -1), least(c * 16 + 16, :rows) * 100, least(16, :rows - c * 16), d.doc,
           r.steps, r.times, jsonb_build_object('loss', r.loss, 'accuracy', r.accuracy)
    FROM made, generate_series(0, (:rows - 1) / 16) c, LATERAL (SELECT string_agg((s * 100)::text, ',') steps,
         string_agg(date_part('epoch', start + s * interval '1 second')::text, ',') times,
         string_agg(to_jsonb((hashint4(t + s * 7919) & 65535) / 65536::float8)::text, ',') loss,
         string_agg(to_jsonb((hashint4(t * 31 + s) & 65535) / 65536::float8)::text, ',') accuracy
         FROM generate_series(c * 16 + 1, least(c * 16 + 16, :rows)) s) r, LATERAL (SELECT jsonb_object_agg(m, jsonb_build_array(16, 8,
         jsonb_build_array(0.01, c * 1600 + 300, 1767323045), jsonb_build_array(0.99, c * 1600 + 700, 1767323045), 0.5)) doc
         FROM unnest(ARRAY['loss', 'accuracy']) m) d;
INSERT INTO metric_steps (experiment_id, grp, steps, names, trial_id, id)
    SELECT e, grp, s * every, names, (e - 1) * :per + 1, (e - 1) * :rows + s
    FROM generate_series(1, :experiments) e, (VALUES ('training', 100, :rows, '{accuracy,loss}'::text[]), ('validation', 1000, 10, '{loss}')) x(grp, every, n, names),
         generate_series(1, n) s;
-- One trial whose metric has :long reports: the last one.
INSERT INTO metrics (trial_id, grp, steps, run_id, end_time, metrics)
    SELECT t, 'long', s, 1, start + s * interval '1 second', jsonb_build_object('avg_metrics', jsonb_build_object('loss', (hashint4(s) & 65535) / 65536::float8))
    FROM (SELECT * FROM made ORDER BY t DESC LIMIT 1) x, generate_series(1, :long) s;
INSERT INTO metric_steps (experiment_id, grp, steps, names, trial_id, id) SELECT experiment_id, grp, steps, '{loss}', trial_id, m.id FROM metrics m JOIN trials t ON t.id = trial_id WHERE grp = 'long';
INSERT INTO metric_heads (trial_id, grp, run_id, steps, closed, closed_steps) SELECT max(t), 'long', 1, :long, :long / 16, :long / 16 * 16 FROM made;
UPDATE trials SET closed_batches = greatest(closed_batches, :long / 16 * 16) WHERE id = (SELECT max(t) FROM made);
INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc)
    SELECT (SELECT max(t) FROM made), 'long', l, s, s * w, s * w + w, w, jsonb_build_object('loss', jsonb_build_array(w, w / 2,
           jsonb_build_array(0.01, s * w + 1, 1767323045), jsonb_build_array(0.99, s * w + w - 1, 1767323045), 0.5))
    FROM generate_series(1, 12) l, LATERAL (SELECT (16 * 4 ^ (l - 1))::integer w) x, generate_series(0, :long / w - 1) s;
UPDATE metric_chunks SET (report_steps, report_times, report_values) =
    (SELECT r.report_steps, r.report_times, r.report_values FROM chunk_made(trial_id, grp, after_steps, last_steps) r)
    WHERE trial_id = (SELECT max(t) FROM made) AND grp = 'long' AND level = 1;
