-- +goose Up
-- The browsers of people that take messages. sealed holds the endpoint, which is a
-- credential, and the keys. digest is of the endpoint: a browser subscribes once.
CREATE TABLE push_subscriptions (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  digest     TEXT NOT NULL,
  service    TEXT NOT NULL,
  label      TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  sent_at    BIGINT,
  UNIQUE (account_id, user_id, digest)
);

-- What is on its way to a browser. due_at is the end of the lease while a node has it.
CREATE TABLE push_messages (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL REFERENCES accounts (id),
  subscription_id TEXT NOT NULL REFERENCES push_subscriptions (id),
  topic           TEXT NOT NULL,
  urgent          BOOLEAN NOT NULL,
  sealed          TEXT NOT NULL,
  tries           BIGINT NOT NULL DEFAULT 0,
  due_at          BIGINT NOT NULL,
  created_at      BIGINT NOT NULL,
  UNIQUE (subscription_id, topic)
);
CREATE INDEX push_messages_due ON push_messages (due_at);
