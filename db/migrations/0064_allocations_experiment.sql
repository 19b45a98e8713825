-- Experiments that are deleted: each portion looks for what is left of their collections.
CREATE INDEX allocations_experiment ON allocations (experiment_id);
