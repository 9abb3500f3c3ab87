package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/fault"
)

// TestCeilings holds that the ceilings of roles follow their published rule.
func TestCeilings(t *testing.T) {
	for _, c := range []struct {
		role Role
		has  []Scope
		not  []Scope
	}{
		{Viewer, []Scope{ReadTasks, ReadRunners, SelfKeys, SelfPrompt}, []Scope{ReadBilling, ReadUsage, WriteTasks, WriteAccount}},
		{Member, []Scope{ReadUsage, WriteTasks, WritePRs, WriteDonations}, []Scope{ReadBilling, WriteRunners, WriteRepos, WriteSecrets}},
		{Admin, []Scope{ReadBilling, WriteAccount, WriteMembers, WriteRunners, WriteSecrets}, []Scope{WriteBilling}},
		{Owner, []Scope{WriteBilling}, []Scope{AdminReadPlat, AdminUsers}},
		{Role("stranger"), nil, []Scope{ReadAccount}},
	} {
		for _, s := range c.has {
			if !c.role.Ceiling().Has(Scopes(s)) {
				t.Errorf("%s lacks %s", c.role, s)
			}
		}
		for _, s := range c.not {
			if c.role.Ceiling().Has(Scopes(s)) {
				t.Errorf("%s has %s", c.role, s)
			}
		}
	}
	var below Set
	for _, r := range []Role{Viewer, Member, Admin, Owner} {
		if !r.Ceiling().Has(below) {
			t.Errorf("%s holds less than the role below it", r)
		}
		if r.Ceiling()&OperatorOnly != 0 {
			t.Errorf("%s holds an operator scope", r)
		}
		below = r.Ceiling()
	}
}

func TestScopeSets(t *testing.T) {
	if n := len(Vocabulary()); n != 42 {
		t.Errorf("%d scopes in the vocabulary", n)
	}
	s, unknown := ParseScopes([]string{"write:tasks", "read:tasks", "fly:planes"})
	if !slices.Equal(unknown, []string{"fly:planes"}) || !slices.Equal(s.Names(), []string{"read:tasks", "write:tasks"}) {
		t.Errorf("parsed %v, unknown %v", s.Names(), unknown)
	}
}

// TestScopesHaveWords holds that every scope says what it opens, in words that no other
// scope has and that fit into a sentence.
func TestScopesHaveWords(t *testing.T) {
	of := map[string]Scope{}
	for _, s := range Vocabulary() {
		w := s.Words()
		if other := of[w]; other != "" {
			t.Errorf("%s and %s open the same: %q", s, other, w)
		}
		if of[w] = s; len(w) < 10 || strings.ToLower(w[:1]) != w[:1] || strings.HasSuffix(w, ".") {
			t.Errorf("%s opens %q", s, w)
		}
	}
	if w := Scope("fly:planes").Words(); w != "" {
		t.Errorf("nobody's scope opens %q", w)
	}
}

func TestRules(t *testing.T) {
	anonymous := Actor{}
	machine := Actor{Credential: PAT, Scopes: Scopes(ReadTasks)}
	user := Actor{Credential: PAT, UserID: "u", Scopes: Scopes(ReadTasks)}
	session := Actor{Credential: Session, UserID: "u", Scopes: Scopes(ReadTasks)}
	for name, c := range map[string]struct {
		rule  Rule
		actor Actor
		slug  string
	}{
		"public":               {Public(), anonymous, ""},
		"no credential":        {Require(ReadTasks), anonymous, "unauthenticated"},
		"per request, none":    {PerRequest(), anonymous, "unauthenticated"},
		"per request":          {PerRequest(), machine, ""},
		"scope held":           {Require(ReadTasks), machine, ""},
		"scope missing":        {Require(ReadTasks, ReadPRs), machine, "missing-scope"},
		"any credential":       {Require(ReadAccount).OrAnyCredential(), machine, ""},
		"any but none":         {Require(ReadAccount).OrAnyCredential(), anonymous, "unauthenticated"},
		"machine on personal":  {Require(ReadTasks).OfUser(), machine, "user-required"},
		"user on personal":     {Require(ReadTasks).OfUser(), user, ""},
		"token for a session":  {PerRequest().OfSession(), user, "session-required"},
		"session":              {PerRequest().OfSession(), session, ""},
		"another one instead":  {Require(WriteTasks).OrHolding(ReadTasks), machine, ""},
		"neither of them":      {Require(WriteTasks).OrHolding(WritePRs), machine, "missing-scope"},
		"half of the others":   {Require(WriteTasks).OrHolding(ReadTasks, WritePRs), machine, "missing-scope"},
		"none instead of it":   {Require(ReadTasks).OrHolding(WritePRs), anonymous, "unauthenticated"},
		"scope before session": {Require(WriteTasks).OfSession(), machine, "missing-scope"},
	} {
		err := c.rule.Check(c.actor)
		var f *fault.Error
		if errors.As(err, &f) {
			if f.Slug != c.slug {
				t.Errorf("%s: %s, want %q", name, f.Slug, c.slug)
			}
		} else if c.slug != "" {
			t.Errorf("%s: allowed, want %s", name, c.slug)
		}
	}
	if (Rule{}).Declared() || !Public().Declared() {
		t.Error("a row without a rule counts as declared, or one with a rule does not")
	}
}
