package session

import "yardmaster/internal/db"

// Call is a finished call to a model, as a session counts it.
type Call struct {
	SessionID string
	Provider  string
	Model     string
	// The tokens do not overlap; CacheTokens were read from or written to a cache.
	InputTokens, OutputTokens, CacheTokens int64

	CostMicros *int64 // micro-dollars; nil: the model has no price
}

// AddCall adds a call to its session. The id of the session comes from a token's
// attempt and never from a request, so AddCall does not compare accounts. It does
// nothing if there is no such session.
func AddCall(tx *db.Tx, c Call) error {
	args := addCallArgs{
		ID: c.SessionID, InputTokens: c.InputTokens, OutputTokens: c.OutputTokens, CacheTokens: c.CacheTokens,
		Provider: c.Provider, Model: c.Model,
	}
	if c.CostMicros == nil {
		args.Unpriced = 1
	} else {
		args.Cost = *c.CostMicros
	}
	_, err := addCall.Exec(tx, args)
	return err
}
