-- +goose Up
-- What calls of models cost by the day, by the key that they went over, and by the provider and the
-- model that answered. A session here may be a gift, by its id. Days are counted from 1970.
CREATE TABLE spend_days (
  account_id  TEXT NOT NULL,
  day         BIGINT NOT NULL,
  session_id  TEXT NOT NULL,
  key_id      TEXT NOT NULL, -- '': not known, of calls from before this table
  provider    TEXT NOT NULL,
  model       TEXT NOT NULL,
  calls       BIGINT NOT NULL,
  unpriced    BIGINT NOT NULL,
  cost_micros BIGINT NOT NULL,
  PRIMARY KEY (account_id, day, session_id, key_id, provider, model)
);
INSERT INTO spend_days (account_id, day, session_id, key_id, provider, model, calls, unpriced, cost_micros)
  SELECT m.account_id, m.minute / 86400000000, m.session_id, '', COALESCE(s.provider, ''), COALESCE(s.model, ''),
    SUM(m.calls), SUM(m.unpriced), COALESCE(SUM(m.cost_micros), 0)
  FROM spend_minutes m LEFT JOIN sessions s ON s.id = m.session_id
  GROUP BY m.account_id, m.minute / 86400000000, m.session_id, COALESCE(s.provider, ''), COALESCE(s.model, '');
