package hook

// The headers of an attempt.
const (
	VersionHeader   = "X-Service-Event-Version"
	TimestampHeader = "X-Service-Timestamp"
	SignatureHeader = "X-Service-Signature"
)

// Headers are the headers that a receiver looks at, with what they say.
func Headers() map[string]string {
	return map[string]string{
		VersionHeader:   "Of the form of the body: 1.",
		TimestampHeader: "When the attempt was made, in Unix seconds. Refuse one that is more than 5 minutes old.",
		SignatureHeader: "sha256= and, in hex, the HMAC-SHA256 with the secret of the webhook over the timestamp, a full stop and the " +
			"body as it came. Compare it in constant time.",
	}
}
