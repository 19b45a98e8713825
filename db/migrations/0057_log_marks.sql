-- Where in a task's log which times are, so that a time is found without reading all lines before it. Each mark is of the
-- lines of its task after the mark before; lines after the last one have none yet (f/logs.sql makes them).
CREATE TABLE log_marks (
    task_id text NOT NULL,
    id bigint NOT NULL,           -- of the last of its lines
    since bigint NOT NULL,        -- of the mark before; 0: it is the first
    oldest timestamptz NOT NULL,  -- of its lines, which need not be in the order of their times
    newest timestamptz NOT NULL,
    PRIMARY KEY (task_id, id)
);
