-- Runs of some time are found by when they ran: of those that ended after its begin there are ever more.
CREATE INDEX slot_uses_span ON slot_uses USING gist (tstzrange(least(start_time, end_time), greatest(start_time, end_time), '[]'));
