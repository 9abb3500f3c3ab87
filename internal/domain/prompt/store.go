package prompt

import (
	"time"

	"yardmaster/internal/db"
)

type varRow struct {
	Scope     Scope
	Ref       string
	Key       string
	Value     string
	CreatedAt time.Time
	UpdatedAt time.Time
}

type pair struct{ Key, Value string }

type promptRow struct {
	Prompt    string
	UpdatedAt time.Time
	UpdatedBy string
}

type personalRow struct {
	Prompt    string
	UpdatedAt time.Time
}

const varColumns = `scope, ref, key, value, created_at, updated_at`

var (
	listVars = db.QWith[listArgs, varRow](`SELECT ` + varColumns + ` FROM prompt_vars
		WHERE account_id = :account_id AND :scope IN ('', scope) AND :ref IN ('', ref)
		AND (scope > :after_scope OR scope = :after_scope AND (ref > :after_ref OR ref = :after_ref AND key > :after_key))
		ORDER BY scope, ref, key LIMIT :limit`)
	oneVar = db.QWith[oneVarArgs, varRow](`SELECT ` + varColumns + ` FROM prompt_vars
		WHERE account_id = :account_id AND scope = :scope AND ref = :ref AND key = :key`)
	countVars = db.Q[int64](`SELECT COUNT(*) FROM prompt_vars WHERE account_id = $1`)
	putVar    = db.SWith[putVarArgs](`INSERT INTO prompt_vars (account_id, scope, ref, key, value, created_at, updated_at)
		VALUES (:account_id, :scope, :ref, :key, :value, :created_at, :created_at)
		ON CONFLICT (account_id, scope, ref, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`)
	dropVar = db.SWith[dropVarArgs](`DELETE FROM prompt_vars
		WHERE account_id = :account_id AND scope = :scope AND ref = :ref AND key = :key`)
	// ORDER BY scope puts the widest scope first: account, repo, template.
	varsFor = db.Q[pair](`SELECT key, value FROM prompt_vars WHERE account_id = $1
		AND (scope = 'account' OR scope = 'repo' AND ref = $2 OR scope = 'template' AND ref = $3) ORDER BY scope`)

	onePrompt = db.Q[promptRow](`SELECT prompt, updated_at, updated_by FROM system_prompts
		WHERE account_id = $1 AND scope = $2 AND ref = $3`)
	promptsFor = db.Q[string](`SELECT prompt FROM system_prompts WHERE account_id = $1
		AND (scope = 'account' OR scope = 'repo' AND ref = $2 OR scope = 'template' AND ref = $3) ORDER BY scope`)
	putPrompt = db.SWith[putPromptArgs](`INSERT INTO system_prompts (account_id, scope, ref, prompt, updated_at, updated_by)
		VALUES (:account_id, :scope, :ref, :prompt, :updated_at, :updated_by)
		ON CONFLICT (account_id, scope, ref) DO UPDATE SET prompt = excluded.prompt, updated_at = excluded.updated_at,
		updated_by = excluded.updated_by`)
	dropPrompt = db.S(`DELETE FROM system_prompts WHERE account_id = $1 AND scope = $2 AND ref = $3`)

	personal    = db.Q[personalRow](`SELECT prompt, updated_at FROM personal_prompts WHERE user_id = $1`)
	putPersonal = db.S(`INSERT INTO personal_prompts (user_id, prompt, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_id) DO UPDATE SET prompt = excluded.prompt, updated_at = excluded.updated_at`)
	dropPersonal = db.S(`DELETE FROM personal_prompts WHERE user_id = $1`)
)

// putPromptArgs are the parameters of putPrompt.
type putPromptArgs struct {
	AccountID, Scope, Ref, Prompt string
	UpdatedAt                     time.Time
	UpdatedBy                     string
}

// dropVarArgs are the parameters of dropVar.
type dropVarArgs struct {
	AccountID, Scope, Ref, Key string
}

// putVarArgs are the parameters of putVar.
type putVarArgs struct {
	AccountID, Scope, Ref, Key, Value string
	CreatedAt                         time.Time
}

// oneVarArgs are the parameters of oneVar.
type oneVarArgs struct {
	AccountID, Scope, Ref, Key string
}

func (r varRow) wire() Variable {
	v := Variable{Scope: r.Scope, Key: r.Key, Value: r.Value, CreatedAt: r.CreatedAt,
		UpdatedAt: r.UpdatedAt}
	if r.Ref != "" {
		v.Ref = &r.Ref
	}
	return v
}

// listArgs are the parameters of listVars: Scope and Ref narrow the list unless
// they are empty, and the After fields name the variable behind which the page
// begins.
type listArgs struct {
	AccountID, Scope, Ref          string
	AfterScope, AfterRef, AfterKey string
	Limit                          int
}
