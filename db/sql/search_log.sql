-- Of which a search is played again: the configuration, the last snapshot, the events since, the trials.
SELECT e.config, s.snapshot, coalesce(s.seq, 0),
       (SELECT coalesce(json_agg(json_build_array(v.seq, v.event) ORDER BY v.seq), '[]')
        FROM search_events v WHERE v.experiment_id = e.id),
       (SELECT coalesce(json_agg(json_build_array(t.id, t.request_id, t.seed, t.hparams) ORDER BY t.id), '[]')
        FROM trials t WHERE t.experiment_id = e.id)
FROM experiments e LEFT JOIN search_snapshots s ON s.experiment_id = e.id
WHERE e.id = $1::integer
