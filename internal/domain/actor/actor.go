// Package actor says who an actor is. Rows name one by a label, as policy.Actor has it:
// user:<id>, pat:<id>, box:<id>, source:<id>, schedule:<id>, or a word such as system. Only
// those of an account have a name in it: its members and those who were, its own tokens and
// boxes, its sources and schedules. It owns no rows; it reads those of who may act.
package actor

import (
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// Name is who an actor is.
type Name struct {
	_     struct{} `doc:"Who an actor is." schema:"ActorName"`
	Actor string   `json:"actor" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"the actor, as rows name it"`
	Name  string   `json:"name" example:"ada" doc:"login of a person, name of a token, a box or a connected system, title of a schedule"`
	Gone  bool     `json:"gone" example:"false" doc:"true: a person who is no member any more"`
}

// kinds are those of actors that may have a name, with how such a name is said.
var kinds = map[string]string{
	"user": "", "pat": "the token ", "box": "the box ", "source": "the source ", "schedule": "the schedule ",
}

// words are actors in words, of which there are no names.
var words = map[string]string{
	"user": "somebody", "pat": "a token", "box": "a box", "source": "a connected system", "schedule": "a schedule",
	"fix_link": "the form of a blocker", "policy": "the policy", "system": "the system", "operator": "an operator",
	codehost.Label: "somebody at the code host",
}

// Needs are the dependencies of Service.
type Needs struct{ DB *db.DB }

// Service implements the capability.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Names finds who some actors are in tx.Account, by their labels. Those that it does not know
// are left out.
func Names(tx *db.Tx, actors []string) ([]Name, error) {
	ids := map[string][]string{}
	for _, a := range actors {
		kind, id, _ := strings.Cut(a, ":")
		if _, ok := kinds[kind]; ok && id != "" {
			ids[kind] = append(ids[kind], id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return named(tx, ids)
}

// InWords are some actors of tx.Account as a text for people has them, by their labels.
func (s *Service) InWords(tx *db.Tx, actors []string) (map[string]string, error) {
	out := make(map[string]string, len(actors))
	for _, a := range actors {
		kind, rest, _ := strings.Cut(a, ":")
		switch said, ok := words[kind]; {
		case kind == codehost.Label && rest != "":
			out[a] = rest + " (at the code host)"
		case ok:
			out[a] = said
		default:
			out[a] = a
		}
	}
	all, err := Names(tx, actors)
	for _, n := range all {
		kind, _, _ := strings.Cut(n.Actor, ":")
		out[n.Actor] = kinds[kind] + n.Name
	}
	return out, err
}
