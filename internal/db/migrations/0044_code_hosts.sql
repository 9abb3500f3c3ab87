-- +goose Up
-- What the server wants done at a code host. id is a UUID in the order of time: it
-- makes the write count once. The intents of one object of a repository are carried
-- out one after the other.
CREATE TABLE host_intents (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  object     TEXT NOT NULL,
  kind       TEXT NOT NULL,
  args       TEXT NOT NULL,
  rank       BIGINT NOT NULL,
  state      TEXT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  limited    BOOLEAN NOT NULL DEFAULT FALSE,
  due_at     BIGINT NOT NULL,
  error      TEXT,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT
);
CREATE INDEX host_intents_due ON host_intents (due_at) WHERE ended_at IS NULL;
CREATE INDEX host_intents_line ON host_intents (repo_id, object, id) WHERE ended_at IS NULL;
CREATE INDEX host_intents_ended ON host_intents (ended_at) WHERE ended_at IS NOT NULL;

-- The App of the server at a code host, as its set-up stored it. sealed are its
-- credentials.
CREATE TABLE code_hosts (
  name        TEXT PRIMARY KEY,
  address     TEXT NOT NULL,
  app_id      TEXT NOT NULL,
  slug        TEXT NOT NULL,
  client_id   TEXT NOT NULL,
  owner_id    TEXT NOT NULL,
  owner_login TEXT NOT NULL,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  switches    TEXT NOT NULL,
  sealed      TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  created_by  TEXT NOT NULL
);
-- A set-up that was begun: hash is that of the state which the host sends back.
CREATE TABLE code_host_setups (
  hash       TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  address    TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL,
  switches   TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
-- The installations of the App, as the host tells. account_id is the account whose
-- repositories they are.
CREATE TABLE installations (
  host         TEXT NOT NULL,
  id           TEXT NOT NULL,
  owner_id     TEXT NOT NULL,
  owner_login  TEXT NOT NULL,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  permissions  TEXT NOT NULL,
  suspended_at BIGINT,
  gone_at      BIGINT,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (host, id)
);
CREATE INDEX installations_account ON installations (account_id);
-- The owners at code hosts whose installations belong to an account.
CREATE TABLE host_owners (
  host       TEXT NOT NULL,
  owner_id   TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  PRIMARY KEY (host, owner_id)
);

-- The deliveries of code hosts, stored before they are answered. body is compressed.
CREATE TABLE host_deliveries (
  host        TEXT NOT NULL,
  guid        TEXT NOT NULL,
  kind        TEXT NOT NULL,
  body        BYTEA,
  bytes       BIGINT NOT NULL,
  state       TEXT NOT NULL,
  tries       BIGINT NOT NULL DEFAULT 0,
  due_at      BIGINT NOT NULL,
  error       TEXT,
  received_at BIGINT NOT NULL,
  ended_at    BIGINT,
  PRIMARY KEY (host, guid)
);
CREATE INDEX host_deliveries_due ON host_deliveries (due_at) WHERE ended_at IS NULL;
CREATE INDEX host_deliveries_received ON host_deliveries (received_at);
-- What the sweep has seen of a repository at another host, and when it is due again.
CREATE TABLE repo_sweeps (
  repo_id TEXT PRIMARY KEY REFERENCES repos (id),
  marks   TEXT NOT NULL,
  due_at  BIGINT NOT NULL
);
CREATE INDEX repo_sweeps_due ON repo_sweeps (due_at);

-- When a code host is asked again to send failed deliveries.
CREATE TABLE host_redeliveries (
  host   TEXT PRIMARY KEY,
  due_at BIGINT NOT NULL
);

ALTER TABLE repos ADD COLUMN installation_id TEXT NOT NULL DEFAULT '';
ALTER TABLE repos ADD COLUMN archived BOOLEAN NOT NULL DEFAULT FALSE;
-- gone_at is when the server lost its access to a repository, and enabled_before
-- whether the repository was enabled then.
ALTER TABLE repos ADD COLUMN gone_at BIGINT;
ALTER TABLE repos ADD COLUMN enabled_before BOOLEAN NOT NULL DEFAULT FALSE;

-- host_url and the fields after it are what the code host says of a pull request, at a
-- host that keeps pull requests. A number below zero stands for one that the host has
-- yet to give.
ALTER TABLE pulls ADD COLUMN host_url TEXT NOT NULL DEFAULT '';
ALTER TABLE pulls ADD COLUMN host_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE pulls ADD COLUMN draft BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE pulls ADD COLUMN fork BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE pulls ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE pulls ADD COLUMN host_checks TEXT NOT NULL DEFAULT '';
ALTER TABLE pulls ADD COLUMN own_checks TEXT NOT NULL DEFAULT '';
DROP INDEX pulls_open_head;
CREATE INDEX pulls_open_head ON pulls (repo_id, head_ref) WHERE state = 'open';
CREATE INDEX pulls_head_sha ON pulls (repo_id, head_sha) WHERE state = 'open';

-- +goose Down
SELECT 1;
