-- One part for each campaign: it is rewritten when the campaign closes, and dropped when it is purged.
CREATE TABLE campaigns (
  number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  state text NOT NULL,
  document bytea NOT NULL,
  signature bytea
);

-- Withdrawn reports leave their key behind: an empty payload where there was a report, NULL where there was none yet.
CREATE TABLE reports (
  campaign integer NOT NULL,
  id bytea NOT NULL,
  payload bytea,
  PRIMARY KEY (campaign, id)
) PARTITION BY LIST (campaign);

-- Which invitations were issued and which are used up. No column leads to a report.
CREATE TABLE invitations (
  campaign integer NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (campaign, hash)
);
CREATE TABLE spent (
  campaign integer NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (campaign, hash)
) PARTITION BY LIST (campaign);
