-- A report's place is its random id: WITHOUT ROWID keeps no number that would tell the order of arrival.
CREATE TABLE campaigns (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  document BLOB NOT NULL,
  signature BLOB
) STRICT;

-- Withdrawn reports leave their key behind: an empty payload where there was a report, NULL where there was none yet.
CREATE TABLE reports (
  campaign INTEGER NOT NULL REFERENCES campaigns (number),
  id BLOB NOT NULL,
  payload BLOB,
  PRIMARY KEY (campaign, id)
) STRICT, WITHOUT ROWID;

-- Which invitations were issued and which are used up. No column leads to a report.
CREATE TABLE invitations (
  campaign INTEGER NOT NULL REFERENCES campaigns (number),
  hash BLOB NOT NULL,
  PRIMARY KEY (campaign, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
  campaign INTEGER NOT NULL REFERENCES campaigns (number),
  hash BLOB NOT NULL,
  PRIMARY KEY (campaign, hash)
) STRICT, WITHOUT ROWID;
