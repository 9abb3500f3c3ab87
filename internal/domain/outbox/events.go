package outbox

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is nobody: what operators do with mails concerns no account.
var audience = event.Audience(policy.AdminReadUsers)

// The events of mails.
var (
	retriedEvent = event.Declare[event.None]("mail.retried", audience, "An operator had a mail sent again that was not sent.")
	clearedEvent = event.Declare[event.None]("mail.refusal_cleared", audience,
		"An operator had mails sent again to an address that a mail server had refused.")
)
