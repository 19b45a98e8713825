-- The certificate authority of the cluster's own, in PEM. Made by the first master that is asked for
-- one; all masters of this database issue their certificates from it.
CREATE TABLE authority (
    is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    certificate text NOT NULL,
    key text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now()
);
