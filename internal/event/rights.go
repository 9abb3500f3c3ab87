package event

// Resolved credentials are kept in memory. The domains that change what a
// credential is worth send these two, and need not know which memory that is.
var (
	// RightsChanged is sent, with the id of a user, when what the user may do is
	// another thing once the transaction has committed.
	RightsChanged = DeclareSignal[string]("user.rights_changed", "What a user may do has changed.")
	// CredentialDropped is sent, with the hash of a credential, when it is good
	// for nothing, or for another account, once the transaction has committed.
	CredentialDropped = DeclareSignal[string]("credential.dropped", "A credential is good for nothing any more, or for another account.")
)
