-- Marks in logs: which times are where. Lines are read in the order of their ids, which is nearly that of their times: ranks
-- send in batches, and hosts have clocks of their own. A mark tells the oldest and the newest time of its lines, whatever
-- their order; lines after the last mark are looked at. What a mark tells stays true where some of its lines go.

-- Marks the next lines of a task, up to one that is there, and p_most at most; fewer than p_least are left. How many it
-- found. None may come to lie before a mark later. One session at a time writes lines (check_epoch()), but the one before
-- it, whose connection broke, may yet commit some whose ids are lower: meanwhile nothing is marked.
CREATE OR REPLACE FUNCTION mark_log(p_task text, p_upto bigint, p_least integer, p_most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    last bigint := coalesce((SELECT max(id) FROM log_marks WHERE task_id = p_task), 0);
    x record;
BEGIN
    IF EXISTS (SELECT FROM pg_locks WHERE relation = 'task_logs'::regclass AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
        RETURN 0;
    END IF;
    SELECT count(*) n, max(id) id, min(time) oldest, max(time) newest INTO x FROM
        (SELECT id, time FROM task_logs WHERE task_id = p_task AND id > last AND id <= p_upto ORDER BY id LIMIT p_most) l;
    IF x.n >= p_least THEN
        INSERT INTO log_marks (task_id, id, since, oldest, newest) VALUES (p_task, x.id, last, x.oldest, x.newest);
    END IF;
    RETURN x.n;
END $$;

-- A log from before there were marks gets one of many lines each time, until it has caught up.
CREATE OR REPLACE FUNCTION mark_at_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mark_log(NEW.task_id, NEW.id, 1, 20000);
    RETURN NULL;
END $$;
-- About each 2,000th line of whatever task, without counting: a prime, so that tasks whose lines take turns all get marks.
CREATE TRIGGER task_logs_marked AFTER INSERT ON task_logs FOR EACH ROW WHEN (NEW.id % 1999 = 0) EXECUTE FUNCTION mark_at_line();

-- Are so many lines without a mark that it is worth making some?
CREATE OR REPLACE FUNCTION log_lags(p_task text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM task_logs WHERE task_id = p_task
        AND id > coalesce((SELECT max(id) FROM log_marks WHERE task_id = p_task), 0) ORDER BY id OFFSET 3999 LIMIT 1);
END $$;

-- Makes some of the marks that an old log lacks; whether it lacks more. Not all at once: others' writes wait meanwhile.
CREATE OR REPLACE FUNCTION mark_old_log(p_task text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..5 LOOP
        IF mark_log(p_task, (SELECT max(id) FROM task_logs WHERE task_id = p_task), 2000, 2000) < 2000 THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- All lines of a task beyond one, up to the one that this gives, are of p_after or before.
CREATE OR REPLACE FUNCTION log_since(p_task text, p_after timestamptz, p_beyond bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(p_beyond, coalesce(
        (SELECT since FROM log_marks WHERE task_id = p_task AND id > p_beyond AND newest > p_after ORDER BY id LIMIT 1),
        (SELECT max(id) FROM log_marks WHERE task_id = p_task), 0));
END $$;

-- All lines of a task below one (0: of all), down to the one that this gives, without it, are after p_before.
CREATE OR REPLACE FUNCTION log_upto(p_task text, p_before timestamptz, p_below bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    below bigint := CASE p_below WHEN 0 THEN 9223372036854775807 ELSE p_below END;
    last bigint := coalesce((SELECT max(id) FROM log_marks WHERE task_id = p_task), 0);
BEGIN
    RETURN coalesce(
        (SELECT id FROM task_logs WHERE task_id = p_task AND id > last AND id < below AND time <= p_before ORDER BY id DESC LIMIT 1),
        (SELECT least(id, below - 1) FROM log_marks WHERE task_id = p_task AND oldest <= p_before
            AND id <= coalesce((SELECT min(id) FROM log_marks WHERE task_id = p_task AND id >= below), below) ORDER BY id DESC LIMIT 1),
        0);
END $$;
