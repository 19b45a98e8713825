-- A model definition is a gzip: to try to compress it again took a fifth of PostgreSQL's time for a new experiment.
ALTER TABLE experiments ALTER COLUMN model_def SET STORAGE EXTERNAL;
