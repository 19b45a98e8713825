-- The list of experiments reads the number and size of each one's checkpoints from the index alone, and the ids of one
-- state in the order of its pages, which experiments_list has to be searched for.
DROP INDEX checkpoints_experiment, experiments_state;
CREATE INDEX checkpoints_experiment ON checkpoints (experiment_id) INCLUDE (state, bytes);
CREATE INDEX experiments_state ON experiments (state, id) INCLUDE (archived, owner_id, project_id);
