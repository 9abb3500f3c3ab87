-- +goose Up
-- answered_sha of a request for changes: the head that has answered it, '' before there is one.
-- A request is answered once, so that a thread which somebody opens again stays open. Those from
-- before have been answered by the head that their pull request has now, if it is another one.
ALTER TABLE host_reviews ADD COLUMN answered_sha TEXT NOT NULL DEFAULT '';
UPDATE host_reviews SET answered_sha = (SELECT p.head_sha FROM pulls p WHERE p.id = host_reviews.pr_id)
WHERE answered = TRUE AND state = 'changes_requested'
  AND EXISTS (SELECT 1 FROM pulls p WHERE p.id = host_reviews.pr_id AND p.head_sha <> host_reviews.head_sha);

-- Programs that know the schema up to here work with it: they resolve no threads of reviews.
INSERT INTO schema_releases (version, oldest, program) VALUES (690, 670, '');
