package pull

import (
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
)

// failing is why a person has to look at a pull request: its kind, and a sentence.
type failing struct{ kind, why string }

// asksHelp are the reasons about which no question was put, so that people are told. What is
// the matter with the base is told once, about the base.
var asksHelp = []string{moves.NeedRearm, moves.NeedRetry, moves.NeedCheck, moves.NeedApproval, moves.NeedMachine, moves.NeedHands,
	moves.NeedPermission, moves.NeedBaseBranch}

// help tells people that a pull request needs them from now on, or does not any more.
func (s *Service) help(tx *db.Tx, m moving, before, needs string) error {
	if needs == before {
		return nil
	}
	if slices.Contains(asksHelp, before) {
		if err := record.SeenTo.Send(tx, record.Note{PRID: m.ID, Text: "It does not wait for that any more."}); err != nil {
			return err
		}
	}
	if !slices.Contains(asksHelp, needs) || m.AbandonedAt != nil {
		return nil
	}
	f := m.failing()
	return record.RoundsSpent.Send(tx, record.Trouble{
		PRID: m.ID, RepoID: m.RepoID, TaskID: m.TaskID, URL: m.Address(s.BaseURL), Category: f.kind, Reason: f.why,
		Title: fmt.Sprintf("Pull request #%d needs a person", m.Number),
		Body:  fmt.Sprintf("%s\n%s\n\n%s.", m.Title, m.Address(s.BaseURL), capital(f.why)),
	})
}

// failing is why a person has to look, where the step of a pull request says that one has to.
func (m moving) failing() failing {
	switch m.Step.Of {
	case moves.NeedCheck, moves.NeedApproval, moves.NeedMachine:
		return failing{m.Step.Of, m.ChecksWhy}
	case moves.NeedRetry:
		return failing{"push_rejected", "the code host did not carry out the merge"}
	case moves.NeedPermission:
		return failing{"code_host_permission", "a permission at the code host is missing"}
	case moves.NeedBaseBranch:
		return failing{"merge_conflict", "the branch " + m.BaseRef + " that it is to be merged into does not exist"}
	}
	f := m.trouble()
	if m.Step.Of == moves.NeedHands {
		f.why += ", and agents do not push to " + m.notOurs()
	}
	return f
}

// notOurs names the branch that agents do not push to.
func (m moving) notOurs() string {
	switch {
	case m.Fork:
		return "a branch of another repository"
	case m.OnDefault(m.Repo):
		return "the default branch"
	}
	return "branches of people, as the policy says"
}

// trouble is what has to be repaired.
func (m moving) trouble() failing {
	switch {
	case m.Mergeable == "conflict":
		return failing{"merge_conflict", "the branch conflicts with its base"}
	case m.Checks == record.ChecksFailed:
		return failing{"ci_ladder_spent", m.ChecksWhy}
	case m.Objections > 0:
		return failing{"ci_ladder_spent", "somebody requests changes"}
	case m.Findings > 0:
		return failing{"ci_ladder_spent", "findings of its review wait for an answer"}
	}
	return failing{"ci_ladder_spent", "its repair was cancelled"}
}

// capital is a text that begins with a capital letter.
func capital(text string) string {
	if text == "" {
		return "It goes no further"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
