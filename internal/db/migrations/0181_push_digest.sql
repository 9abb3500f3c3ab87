-- +goose Up
-- By the browser: one that somebody else subscribes is forgotten for those before.
CREATE INDEX push_subscriptions_digest ON push_subscriptions (digest);
