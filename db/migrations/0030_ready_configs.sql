-- An experiment's configuration as text that is sent as it is: lists spent most of their time on making it of jsonb.
ALTER TABLE experiments ADD COLUMN config_json json GENERATED ALWAYS AS (config::text::json) STORED;
