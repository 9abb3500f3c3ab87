package event

import "yardmaster/internal/policy"

// The topics whose events several domains declare. The domain that owns the rows
// exports its topic again.
var (
	Tasks    = &Topic{Name: "tasks", Scope: policy.ReadTasks, Key: "task_id", Fixed: true}
	Plans    = &Topic{Name: "plans", Scope: policy.ReadTasks, Key: "plan_id", Fixed: true}
	Sessions = &Topic{Name: "sessions", Scope: policy.ReadSessions, Key: "run_id", Fixed: true}
)
