-- +goose Up
-- The addresses of customers that are told of events. sealed holds the address and the
-- secret that signs; it is empty once the webhook was deleted.
CREATE TABLE webhooks (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  name         TEXT NOT NULL,
  masked       TEXT NOT NULL,
  sealed       TEXT NOT NULL,
  types        TEXT NOT NULL,                -- JSON; the types of events that are sent
  created_by   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  unhealthy_at BIGINT,
  deleted_at   BIGINT
);
CREATE UNIQUE INDEX webhooks_name ON webhooks (account_id, name) WHERE deleted_at IS NULL;

-- What is sent, byte for byte, to however many webhooks, at each try.
CREATE TABLE webhook_events (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  type       TEXT NOT NULL,
  body       TEXT NOT NULL,
  source     TEXT NOT NULL,                  -- the audited event that it tells of; its own id if none
  created_at BIGINT NOT NULL,
  UNIQUE (account_id, source)
);
CREATE INDEX webhook_events_age ON webhook_events (created_at);

-- An event on its way to a webhook. due_at is NULL once the delivery has ended.
CREATE TABLE webhook_deliveries (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  hook_id    TEXT NOT NULL REFERENCES webhooks (id),
  event_id   TEXT NOT NULL REFERENCES webhook_events (id),
  state      TEXT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  created_at BIGINT NOT NULL
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (hook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (event_id);

-- The ledger: the newest attempts of an account.
CREATE TABLE webhook_attempts (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL REFERENCES accounts (id),
  hook_id         TEXT NOT NULL REFERENCES webhooks (id),
  event_id        TEXT NOT NULL,
  delivery_id     TEXT NOT NULL,
  type            TEXT NOT NULL,
  attempt         BIGINT NOT NULL,
  state           TEXT NOT NULL,
  response_status BIGINT,
  excerpt         TEXT NOT NULL DEFAULT '',
  error           TEXT,
  took            BIGINT NOT NULL DEFAULT 0, -- microseconds
  next_at         BIGINT,
  at              BIGINT NOT NULL
);
CREATE INDEX webhook_attempts_newest ON webhook_attempts (account_id, id);

-- +goose Down
SELECT 1;
