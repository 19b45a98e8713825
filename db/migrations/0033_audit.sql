-- Who asked to change what, from where. A row is written no later than the change itself; its status
-- follows with the answer, and is null where none was given (the master died over it).
CREATE TABLE audit (
    epoch bigint NOT NULL,        -- the leadership that took the request, and its count of them
    n bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    user_id integer NOT NULL,
    username text NOT NULL,       -- as it was then
    address text NOT NULL,
    operation text NOT NULL,      -- the operationId of the route
    method text NOT NULL,
    path text NOT NULL,
    detail jsonb,                 -- what of the body tells what it is about; never a secret
    status integer,
    PRIMARY KEY (epoch, n)
);
CREATE INDEX audit_user ON audit (username, epoch, n);
CREATE INDEX audit_at ON audit (at);
