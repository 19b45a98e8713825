-- What the doctor asks of a server: version, whether tables may be made, its clock in microseconds, whether a master
-- leads (db_lead.h), whether what is written outlives the machine's death, and how sure a commit is.
SELECT current_setting('server_version'),
       has_schema_privilege(coalesce(current_schema(), 'public'), 'CREATE'),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       EXISTS (SELECT FROM pg_locks
               WHERE locktype = 'advisory' AND classid = 0 AND objid = 4919001 AND granted
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
       current_setting('fsync')::bool AND current_setting('full_page_writes')::bool,
       current_setting('synchronous_commit')
