-- Who may use the admin listener; of a token only its hash is kept.
CREATE TABLE credentials (
  name TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
