-- Lists of experiments by a time or what they were forked from read this index alone until they know their page, as those by
-- id do. None of it changes while an experiment runs, but with its state, which was in the former one. Texts of any length,
-- as an unmanaged experiment's pool, would not fit in it.
CREATE INDEX experiments_listed ON experiments (id)
    INCLUDE (archived, state, owner_id, project_id, start_time, end_time, parent_id);
DROP INDEX experiments_list;
