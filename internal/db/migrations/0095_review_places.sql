-- +goose Up
-- Where a finding stands at a host that keeps reviews: the first comment of its thread.
CREATE TABLE review_places (
  finding_id TEXT PRIMARY KEY REFERENCES review_findings (id),
  pr_id      TEXT NOT NULL,
  comment_id TEXT NOT NULL
);
CREATE INDEX review_places_pull ON review_places (pr_id);

-- +goose Down
SELECT 1;
