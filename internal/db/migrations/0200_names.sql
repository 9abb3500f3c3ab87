-- +goose Up
-- People name an object by the beginning or the end of its id, a branch or a name.
-- db.IDs reads the first two kinds of index. The second does not begin with the account: a
-- planner would take it for any question about one.
CREATE INDEX tasks_id ON tasks (account_id, id);
CREATE INDEX tasks_tail ON tasks ((substr(id, 33, 4)), account_id);
CREATE INDEX tasks_branch ON tasks (account_id, branch, created_at, id);
CREATE INDEX tasks_box ON tasks (account_id, box_id, created_at, id) WHERE box_id IS NOT NULL;
CREATE INDEX pulls_id ON pulls (account_id, id);
CREATE INDEX pulls_tail ON pulls ((substr(id, 33, 4)), account_id);
CREATE INDEX pulls_branch ON pulls (account_id, head_ref, created_at, id);
CREATE INDEX asks_id ON asks (account_id, id);
CREATE INDEX asks_tail ON asks ((substr(id, 33, 4)), account_id);
CREATE INDEX plans_id ON plans (account_id, id);
CREATE INDEX plans_tail ON plans ((substr(id, 33, 4)), account_id);
CREATE INDEX blockers_id ON blockers (account_id, id);
CREATE INDEX blockers_tail ON blockers ((substr(id, 33, 4)), account_id);
CREATE INDEX escalations_id ON escalations (account_id, id);
CREATE INDEX escalations_tail ON escalations ((substr(id, 33, 4)), account_id);
CREATE INDEX boxes_id ON boxes (account_id, id);
CREATE INDEX boxes_tail ON boxes ((substr(id, 33, 4)), account_id);
CREATE INDEX boxes_name ON boxes (account_id, name, created_at, id);
CREATE INDEX sessions_id ON sessions (account_id, id);
CREATE INDEX sessions_tail ON sessions ((substr(id, 33, 4)), account_id);
CREATE INDEX issues_id ON issues (account_id, id);
CREATE INDEX issues_tail ON issues ((substr(id, 33, 4)), account_id);
-- Lists of sessions are narrowed to a model, to how they ended, and to a repository.
CREATE INDEX sessions_model ON sessions (account_id, model, started_at, id) WHERE model IS NOT NULL;
CREATE INDEX sessions_outcome ON sessions (account_id, outcome, started_at, id) WHERE outcome IS NOT NULL;
CREATE INDEX sessions_repo ON sessions (repo_id, started_at, id) WHERE repo_id IS NOT NULL;
