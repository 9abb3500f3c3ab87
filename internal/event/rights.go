package event

// Resolved credentials are cached in memory. The domains that change the rights of
// a credential send these signals, and need not know the caches.
var (
	// RightsChanged is sent, with the id of a user, if the user's rights differ
	// once the transaction has committed.
	RightsChanged = DeclareSignal[string]("user.rights_changed", "What a user may do has changed.")
	// CredentialDropped is sent, with the hash of a credential, if the credential
	// is invalid, or belongs to another account, once the transaction has
	// committed.
	CredentialDropped = DeclareSignal[string]("credential.dropped",
		"A credential is good for nothing any more, or for another account.")
)
