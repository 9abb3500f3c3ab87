package gateway

import (
	"time"

	"yardmaster/internal/llm"
)

// maxTalks is the number of conversations that are kept in memory.
const maxTalks = 10_000

// talks are the conversations that go on, and which key has served each last.
type talks map[talk]served

type talk struct{ session, model string }

type served struct {
	key  string
	warm time.Time // until when the provider keeps what it has cached
}

// served notes that a key has served a conversation.
func (t *talks) served(session string, o llm.Outcome, over llm.Route, now time.Time) {
	if *t == nil || len(*t) >= maxTalks {
		*t = talks{}
	}
	(*t)[talk{session, o.Asked}] = served{over.ID, now.Add(over.Provider.CacheLife(o.Tokens))}
}

// warm is the key whose provider still has the conversation in its cache.
func (t talks) warm(session, model string, now time.Time) (key string, ok bool) {
	s, ok := t[talk{session, model}]
	return s.key, ok && now.Before(s.warm)
}
