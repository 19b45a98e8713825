-- Slots that an agent does not hold usable and an administrator has used all the same.
ALTER TABLE agent_settings ADD COLUMN slots_forced jsonb NOT NULL DEFAULT '[]'; -- slot ids
