package box

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"yardmaster/internal/id"
	"yardmaster/internal/lazy"
	"yardmaster/internal/protocol"
)

// outboxDir is the folder in an agent's home for its declarations, one JSON file
// each: ask-*.json for work that it leaves to others (title, body, repo,
// dedupe_key), action-*.json for what a person is to do to a pull request (pull, kind,
// label, why), blocker-*.json for what only a person can give (kind, question,
// fields). OutboxVariable names it.
const outboxDir = "outbox"

// OutboxVariable is the environment variable with the path of the agent's outbox.
const OutboxVariable = "YARDMASTER_OUTBOX"

// blockedKind is the failure kind of a run that waited for a person without an
// answer.
const blockedKind = "blocked"

// outboxListed limits how many names of the folder are read in one turn.
const outboxListed = 512

// outbox holds what a run has declared. Only the goroutine that drives the agent
// uses it, except for parked.
type outbox struct {
	taken    map[[sha256.Size]byte]bool // digests of the files read; an agent can prevent their removal
	blockers []string                   // ids of the unanswered blockers
	question string                     // of the newest blocker
	parked   atomic.Bool
}

// wake tells whether the run was parked. It drops the blockers of the parked run as
// answered: an agent that still needs something declares it again.
func (o *outbox) wake() bool {
	if !o.parked.Swap(false) {
		return false
	}
	o.blockers, o.question = nil, ""
	return true
}

// readOutbox reads the declarations that the agent has added to its outbox. The
// agent may be hostile and may be running: readOutbox follows no link out of the
// home, waits for no file, and limits what it reads.
func (a *attempt) readOutbox() {
	if a.start.Mute {
		return
	}
	home, names := a.left(outboxDir)
	if home == nil {
		return
	}
	defer home.Close()
	for _, name := range names {
		kind := declarationOf(name)
		if kind == "" {
			continue
		}
		place := path.Join(outboxDir, name)
		text, err := readLeft(home, place, protocol.MaxDeclaredBytes)
		key := sha256.Sum256([]byte(name + "\x00" + string(text)))
		if a.declared.taken[key] {
			continue
		}
		if len(a.declared.taken) >= protocol.MaxDeclared {
			a.log.Warn("declaration beyond the limit", "file", name)
			return
		}
		if a.declared.taken == nil {
			a.declared.taken = map[[sha256.Size]byte]bool{}
		}
		a.declared.taken[key] = true
		if err == nil {
			err = a.declare(kind, text)
		}
		if err != nil {
			a.event(protocol.EventRefused, protocol.OutboxRefused{File: strings.ToValidUTF8(name, "?"), Reason: err.Error()})
		}
		if err := home.Remove(place); err != nil {
			a.log.Debug("declaration not removed", "file", name, "error", err)
		}
	}
}

// declarationOf is the kind of the event that a file of the outbox becomes; "" for a file
// that is none.
func declarationOf(name string) string {
	switch {
	case matches("ask-*.json", name):
		return protocol.EventAsk
	case matches("blocker-*.json", name):
		return protocol.EventBlocker
	case matches("action-*.json", name):
		return protocol.EventAction
	case matches("page-*.json", name):
		return protocol.EventPage
	}
	return ""
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// declare checks a declaration and spools it as an event.
func (a *attempt) declare(kind string, text []byte) error {
	switch kind {
	case protocol.EventAction:
		action := protocol.ActionProposed{}
		if err := decode(text, &action); err != nil {
			return err
		}
		if err := checkAction(action); err != nil {
			return err
		}
		action.ID = id.New()
		a.event(protocol.EventAction, action)
		return nil
	case protocol.EventPage:
		page := protocol.PageProposed{}
		if err := decode(text, &page); err != nil {
			return err
		}
		if err := checkPage(page); err != nil {
			return err
		}
		page.ID = id.New()
		a.event(protocol.EventPage, page)
		return nil
	case protocol.EventAsk:
		ask := protocol.AskFiled{}
		if err := decode(text, &ask); err != nil {
			return err
		}
		if err := checkAsk(ask); err != nil {
			return err
		}
		ask.ID = id.New()
		a.event(protocol.EventAsk, ask)
		return nil
	}
	blocker := protocol.BlockerDeclared{}
	if err := decode(text, &blocker); err != nil {
		return err
	}
	if err := checkBlocker(blocker); err != nil {
		return err
	}
	blocker.ID = id.New()
	a.event(protocol.EventBlocker, blocker)
	a.declared.blockers = append(a.declared.blockers, blocker.ID)
	a.declared.question = blocker.Question
	return nil
}

func decode(text []byte, into any) error {
	if !utf8.Valid(text) {
		return errors.New("is not UTF-8")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.New("is not the JSON object that is expected")
	}
	return nil
}

var (
	fullName   = lazy.New(`^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}$`)
	fieldName  = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_./:-]{0,99}$`)
	fieldKinds = protocol.FieldKind("").Values()
	kinds      = []string{"missing_credential", "missing_access", "decision"}
)

func checkAsk(a protocol.AskFiled) error {
	switch {
	case strings.TrimSpace(a.Title) == "" || len(a.Title) > 200 || strings.ContainsAny(a.Title, "\r\n"):
		return errors.New("title must be one line of at most 200 bytes")
	case strings.TrimSpace(a.Body) == "":
		return errors.New("body must not be empty")
	case a.Repo != "" && !fullName.MatchString(a.Repo):
		return errors.New("repo must be owner/name")
	case len(a.DedupeKey) > 200:
		return errors.New("dedupe_key has more than 200 bytes")
	}
	return nil
}

func checkAction(a protocol.ActionProposed) error {
	switch {
	case a.Pull < 1:
		return errors.New("pull must be the number of a pull request")
	case !slices.Contains([]string{"close", "reopen", "label"}, a.Kind):
		return errors.New("kind must be one of close, reopen, label")
	case (a.Kind == "label") != (a.Label != "") || len(a.Label) > 50:
		return errors.New("label must have 1 to 50 bytes for the kind label, and none otherwise")
	case strings.TrimSpace(a.Why) == "" || len(a.Why) > 500:
		return errors.New("why must have 1 to 500 bytes")
	}
	return nil
}

func checkPage(p protocol.PageProposed) error {
	switch {
	case strings.TrimSpace(p.Slug) == "" || len(p.Slug) > 200:
		return errors.New("slug must have 1 to 200 bytes")
	case (strings.TrimSpace(p.Body) == "") == (strings.TrimSpace(p.Add) == ""):
		return errors.New("one of body and add must have a text")
	case strings.TrimSpace(p.Why) == "" || len(p.Why) > 500:
		return errors.New("why must have 1 to 500 bytes")
	case len(p.Files) > 200:
		return errors.New("there are more than 200 files")
	}
	return nil
}

func checkBlocker(b protocol.BlockerDeclared) error {
	switch {
	case !slices.Contains(kinds, b.Kind):
		return fmt.Errorf("kind must be one of %s", strings.Join(kinds, ", "))
	case strings.TrimSpace(b.Question) == "" || len(b.Question) > 4<<10:
		return errors.New("question must have 1 to 4096 bytes")
	case len(b.Fields) > 20:
		return errors.New("there are more than 20 fields")
	}
	for i, f := range b.Fields {
		switch {
		case !fieldName.MatchString(f.Name):
			return fmt.Errorf("fields.%d.name is not a name", i)
		case !slices.Contains(fieldKinds, string(f.Kind)):
			return fmt.Errorf("fields.%d.kind must be one of %s", i, strings.Join(fieldKinds, ", "))
		case len(f.Environment) > 100 || len(f.Description) > 1000:
			return fmt.Errorf("fields.%d is too long", i)
		}
	}
	return nil
}
