-- Who may use the admin listener; of a token only its hash is kept.
CREATE TABLE credentials (
  name text PRIMARY KEY,
  role text NOT NULL,
  hash bytea NOT NULL UNIQUE
);
