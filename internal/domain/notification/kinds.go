package notification

import "slices"

// Kinds of notifications. Each is written by flow.Notify, where it says so below.
const (
	Approval   = "approval"
	Blocker    = "blocker"
	Escalation = "escalation"
	TaskDone   = "task_done"
	TaskFailed = "task_failed"
	Plan       = "plan"
	Spending   = "spending"
	Box        = "box"
	Connection = "connection"
	Digest     = "digest" // has no rows: a digest is a mail
)

// Channels by which people hear of things.
const (
	Inbox   = "inbox"
	Email   = "email"
	Push    = "push"
	Webhook = "webhook"
)

// Channels lists all channels.
func Channels() []string { return []string{Inbox, Email, Push, Webhook} }

// kind is what is fixed of a kind.
type kind struct {
	name, doc string
	// locked cannot be switched off.
	locked bool
	// waits says that something goes on only when somebody has answered. Who acted is told of
	// it as well, if nobody else is.
	waits bool
	// urgent passes quiet hours.
	urgent bool
	// own says that whoever asks the question writes the mail too, with links that answer it.
	own bool
	// chat says that webhooks which post to a chat are told, unless somebody chooses otherwise.
	chat bool
	// on are the channels of those who have not said otherwise.
	on []string
}

// kinds is the catalogue, in the order in which people see it.
var kinds = []kind{
	{name: Approval, doc: "A pull request waits for your decision, or somebody has said something about it.", waits: true, own: true, chat: true, on: []string{Inbox, Email, Push}},
	{name: Blocker, doc: "A run needs something that only a person can give.", waits: true, chat: true, on: []string{Inbox, Email, Push}},
	{name: Escalation, doc: "A question that nobody but a person can decide, or that the account is going to be deleted.",
		waits: true, locked: true, urgent: true, chat: true, on: Channels()},
	{name: TaskDone, doc: "What you asked for is done.", on: []string{Inbox, Push}},
	{name: TaskFailed, doc: "What you asked for has failed, or waits for a person.", chat: true, on: []string{Inbox, Email, Push}},
	{name: Plan, doc: "A plan, or a part of one, has failed, or it is done.", chat: true, on: []string{Inbox, Email}},
	{name: Spending, doc: "A limit of spending holds work, or the account has nearly all that it may store.", chat: true, on: []string{Inbox, Email}},
	{name: Box, doc: "A box cannot work, or you are asked to own one.", on: []string{Inbox}},
	{name: Connection, doc: "A webhook, a schedule, a token or a code host has stopped working, or an artifact was shared with anybody.", chat: true, on: []string{Inbox, Email}},
	{name: Digest, doc: "What happened, daily and weekly.", on: []string{Email}},
}

// Kind is what sort of thing a notification of the inbox is.
type Kind string

// Values lists the kinds that the inbox has: all but the digest, which is sent alone.
func (Kind) Values() []string { return Kinds()[:len(kinds)-1] }

// Optional is a kind that can be switched off.
type Optional string

// Values lists all kinds but those that are locked.
func (Optional) Values() (out []string) {
	for _, k := range kinds {
		if !k.locked {
			out = append(out, k.name)
		}
	}
	return out
}

// ForChats lists the kinds that a chat is told of unless somebody chooses, by name.
func ForChats() (out []string) {
	for _, k := range kinds {
		if k.chat {
			out = append(out, k.name)
		}
	}
	slices.Sort(out)
	return out
}

// Kinds lists the names of all kinds.
func Kinds() []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

// Doc says what a kind tells.
func Doc(name string) string {
	k, _ := kindOf(name)
	return k.doc
}

// kindOf finds a kind.
func kindOf(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// allows tells whether a kind can go by a channel at all: a digest has no row.
func (k kind) allows(channel string) bool { return k.name != Digest || channel == Email }
