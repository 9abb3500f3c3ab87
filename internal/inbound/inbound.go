// Package inbound reads what other systems deliver: it checks the signature of a
// delivery as the vendor documents it, and says in one form what the delivery tells. It
// keeps nothing and calls nobody.
//
//   - inbound.go: kinds of systems, deliveries and what they say
//   - sign.go: the schemes of signatures
//   - document.go: the JSON of a delivery, and how it is made fit to keep
//   - text.go: how text of strangers is made harmless
//   - mapping.go: how a delivery of the generic kind is read
//   - gitea.go, gitlab.go, sentry.go, linear.go, pagerduty.go, generic.go: one vendor each
package inbound

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kinds of systems.
const (
	Gitea     = "gitea"
	Forgejo   = "forgejo"
	GitLab    = "gitlab"
	Sentry    = "sentry"
	Linear    = "linear"
	PagerDuty = "pagerduty"
	Generic   = "generic" // any system that signs what it sends
)

// Kinds lists the kinds of systems.
func Kinds() []string { return []string{Gitea, Forgejo, GitLab, Sentry, Linear, PagerDuty, Generic} }

// MakesSecret tells whether the systems of a kind make the secret themselves. It is given
// to this server after the address of the source was given to them.
func MakesSecret(kind string) bool { return kind == Sentry || kind == Linear || kind == PagerDuty }

// Request is a delivery as it came.
type Request struct {
	Header func(name string) string
	Body   []byte
}

// Act is what a delivery asks for.
type Act string

// Acts.
const (
	Work    Act = "work"    // something is wanted
	Nothing Act = "nothing" // it is of a kind that may want something, and wants nothing
	Ignored Act = "ignored" // it is of a kind that is not read
	Ping    Act = "ping"    // the vendor only tries the address
)

// Event is what a delivery says. Its texts are those of strangers, made harmless.
type Event struct {
	Name     string // the vendor's name of what has happened
	Act      Act
	IDs      []string // by which the vendor knows the delivery
	Signed   bool     // the IDs are signed, so that a second delivery has others though its body is the same
	Timed    bool     // its time is signed, so that an old one cannot be sent again by others
	Key      string   // of the thing that is wanted, unique at the vendor; empty: it has none
	Again    bool     // a second event with the same Key is the same trouble once more
	Projects []string // names of the place at the vendor that it is about
	Senders  []string // names and ids of who has done it
	Labels   []string
	Labelled bool   // only the labels have changed, so it is Work where a label is wanted
	Ours     string // id of the event of this server that it carries; empty: none
	Title    string // one line
	Text     string
	URL      string // at the vendor; empty: none
	// Challenge is to be answered as it is; empty: there is none.
	Challenge string
}

// ErrMalformed says that the body of a delivery is no JSON object.
var ErrMalformed = errors.New("the delivery is no JSON object")

// window is how old a timestamp that was signed may be, and how far ahead of the clock.
const window = 5 * time.Minute

// vendor is how deliveries of a kind are read.
type vendor struct {
	genuine func(secret string, r Request, now time.Time) bool
	read    func(r Request, d Document, m Mapping) Event
}

var vendors = map[string]vendor{
	Gitea:     {signedGitea, readGitea},
	Forgejo:   {signedForgejo, readGitea},
	GitLab:    {signedGitLab, readGitLab},
	Sentry:    {signedSentry, readSentry},
	Linear:    {signedLinear, readLinear},
	PagerDuty: {signedPagerDuty, readPagerDuty},
	Generic:   {signedGeneric, readGeneric},
}

// Genuine tells whether a delivery to a source of a kind is signed with a secret, and is
// not stale if its time is signed. It takes the same time for a secret that is wrong.
func Genuine(kind, secret string, r Request, now time.Time) bool {
	v, ok := vendors[kind]
	if !ok {
		v = vendors[Generic]
	}
	return v.genuine(secret, r, now) && secret != "" && ok
}

// Read says what a delivery of a kind tells. m is used for the generic kind alone. It
// fails with ErrMalformed.
func Read(kind string, r Request, m Mapping) (Event, Document, error) {
	d, err := Parse(r.Body)
	if err != nil {
		return Event{}, d, err
	}
	return finish(vendors[kind].read(r, d, m)), d, nil
}

// finish makes the texts of an event harmless, and cuts them.
func finish(e Event) Event {
	e.Name = Line(e.Name, maxName)
	e.Title, e.Text, e.URL = Line(e.Title, maxTitle), Text(e.Text), link(e.URL)
	if e.Key != "" {
		e.Key = short(e.Key)
	}
	for _, list := range []*[]string{&e.Projects, &e.Senders, &e.Labels} {
		all := make([]string, 0, len(*list))
		for _, s := range *list {
			if s = plain(s, maxName); s != "" && !slices.Contains(all, s) && len(all) < maxList {
				all = append(all, s)
			}
		}
		*list = all
	}
	ids := e.IDs
	e.IDs = nil
	for _, s := range ids {
		if s != "" {
			e.IDs = append(e.IDs, short(s))
		}
	}
	if e.Act == Work && e.Title == "" {
		e.Act = Nothing
	}
	return e
}

// keyed is the key of a thing; empty if the vendor names none.
func keyed(before, name string) string {
	if name == "" {
		return ""
	}
	return before + name
}

// link is an address of a page at a vendor, empty unless it is one.
func link(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxLink || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return strings.TrimSpace(Line(u.String(), maxLink))
}
