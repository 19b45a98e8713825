-- A full chunk keeps its reports' numbers as text that is ready to be sent, so that a chart of a few thousand reports reads
-- a row for every 16 of them: a sample of 25 trials took each report's point out of its document. Those of chunks that
-- are there already stay in the reports.

ALTER TABLE metric_chunks            -- of level 1; null: not kept
    ADD COLUMN report_steps text,    -- "100,200"
    ADD COLUMN report_times text,    -- wall seconds: "1767225600.5,1767225601"
    ADD COLUMN report_values jsonb;  -- metric -> "0.5,0.25", of those that are a number in each of the reports
