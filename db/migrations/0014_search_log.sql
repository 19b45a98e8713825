-- The searcher's log is kept to its end, so that a search can be replayed, and as it was written:
-- jsonb would turn a metric of 1e300 into 301 digits, which no reader of integers takes back.
ALTER TABLE search_events ALTER COLUMN event TYPE json USING event::json;
ALTER TABLE search_snapshots ALTER COLUMN snapshot TYPE json USING snapshot::json;
