-- Who made a template: null where it is not known, and then an administrator may change it.
ALTER TABLE templates ADD COLUMN user_id integer REFERENCES users;
