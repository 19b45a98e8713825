-- Links that sign a browser in once. Each is made by a session and ends with it: whoever signs out, or
-- has a new password, has no link left.
CREATE TABLE login_links (
    link_sha256 text PRIMARY KEY,
    session_sha256 text NOT NULL REFERENCES user_sessions ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX login_links_session ON login_links (session_sha256);
