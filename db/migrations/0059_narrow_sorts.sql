-- Lists of experiments by a time, what they were forked from or their pool read this index alone until they know their page,
-- as those by id do. None of it changes while an experiment runs, but with its state, which was in the former one.
CREATE INDEX experiments_listed ON experiments (id)
    INCLUDE (archived, state, owner_id, project_id, start_time, end_time, parent_id, resource_pool);
DROP INDEX experiments_list;
