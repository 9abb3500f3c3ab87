package sink

import (
	"bytes"
	"encoding/json"
	"strings"

	"yardmaster/internal/box/scrub"
	"yardmaster/internal/secretscan"
)

// Words are the secrets that are taken out of the copies of one account. What was a secret
// while this node has run stays one: a run may still have a value that was replaced since.
// The zero value knows none.
type Words struct {
	known    map[string]bool
	scrubber *scrub.Scrubber
}

// maxWords is how many secrets are remembered; beyond them the ones of old are forgotten.
const maxWords = 4000

// tokenPrefix begins the tokens of runs. Those of the platform's own calls are in no prompt.
const tokenPrefix = "dev_"

// Learn adds secrets, and the tokens with which the calls of a batch were made.
func (w *Words) Learn(secrets []string, batch []*Made) Cleaner {
	for _, m := range batch {
		if strings.HasPrefix(m.Token, tokenPrefix) {
			secrets = append(secrets, m.Token)
		}
	}
	if w.scrubber == nil || len(w.known) > maxWords {
		w.known, w.scrubber = map[string]bool{}, scrub.New()
	}
	for _, s := range secrets {
		if !w.known[s] {
			w.known[s] = true
			w.scrubber.Add(s)
		}
	}
	return Cleaner{w.scrubber}
}

// Cleaner takes secrets out of text: those that are known, in every form that package scrub
// finds, and what package secretscan recognises.
type Cleaner struct{ scrubber *scrub.Scrubber }

func (c Cleaner) text(s string) string { return secretscan.Scrub(c.scrubber.String(s)) }

// part is text for the beginning of a text of which the rest is missing: an end that may be the
// beginning of a secret is left out.
func (c Cleaner) part(s string) string {
	var out bytes.Buffer
	w := c.scrubber.Writer(&out)
	_, _ = w.Write([]byte(s)) // a buffer takes all; not closed, so that what is undecided stays out
	return secretscan.Scrub(out.String())
}

// value is a value of JSON without secrets, in its texts, numbers and names. whole is false for
// one of which the end may be missing.
func (c Cleaner) value(v any, whole bool) any {
	text := c.text
	if !whole {
		text = c.part
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case json.Number:
		if was := v.String(); c.text(was) != was {
			return secretscan.Mark
		}
	case object:
		out := make(object, len(v))
		for name, member := range v {
			clean := c.value(member, whole)
			if s, ok := clean.(string); ok { // the name may say that it is a secret
				if said, ok := strings.CutPrefix(secretscan.Scrub(name+"="+s), name+"="); ok {
					clean = said
				}
			}
			out[c.text(name)] = clean
		}
		return out
	case list:
		out := make(list, len(v))
		for i, element := range v {
			out[i] = c.value(element, whole)
		}
		return out
	}
	return v
}
