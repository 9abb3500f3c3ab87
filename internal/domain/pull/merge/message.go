package merge

import (
	"context"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// maxMessage limits the part of a report that a commit message has, in characters.
const maxMessage = 2000

// Signers are the names in a merge commit. A zero Person is left out.
type Signers struct {
	RequestedBy codehost.Person // the person who asked for the work
	ApprovedBy  codehost.Person // the person who decided about the merge
	Agent       codehost.Person // the agent that did the work
}

// message is the body of a merge commit: the first paragraph of the report, and the
// Signers.
func (s *Merger) message(ctx context.Context, pr *record.Pull, d record.DueRow) (string, error) {
	var who Signers
	var report string
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if report, err = record.BodyOf.One(tx, tx.Account, pr.ID); err != nil || pr.TaskID == nil || d.DecidedBy == nil {
			return err
		}
		who, err = s.People.Signers(tx, *pr.TaskID, *d.DecidedBy)
		return err
	})
	return commitBody(report, who), err
}

// commitBody puts the trailers into the last paragraph, on their own: git reads no trailer
// out of the report.
func commitBody(report string, who Signers) string {
	var trailers []string
	for _, t := range []struct {
		key string
		who codehost.Person
	}{{"Requested-by", who.RequestedBy}, {"Approved-by", who.ApprovedBy}, {"Co-authored-by", who.Agent}} {
		if name := oneLine(t.who.Name); name != "" {
			trailers = append(trailers, t.key+": "+name+" <"+oneLine(t.who.Email)+">")
		}
	}
	body := firstParagraph(report)
	if len(trailers) == 0 {
		return body
	}
	return strings.TrimSpace(body + "\n\n" + strings.Join(trailers, "\n"))
}

// firstParagraph is the first paragraph of a report that is not a heading.
func firstParagraph(report string) string {
	for p := range strings.SplitSeq(strings.ReplaceAll(report, "\r\n", "\n"), "\n\n") {
		var kept []string
		for line := range strings.SplitSeq(p, "\n") {
			if line = strings.TrimRight(line, " \t"); line != "" && !strings.HasPrefix(line, "#") {
				kept = append(kept, line)
			}
		}
		if len(kept) == 0 {
			continue
		}
		text := []rune(strings.Join(kept, "\n"))
		if len(text) > maxMessage {
			text = append(text[:maxMessage:maxMessage], '…')
		}
		return string(text)
	}
	return ""
}

var unnamed = strings.NewReplacer("<", "", ">", "", "\n", " ", "\r", " ", "\x00", "")

func oneLine(s string) string { return strings.TrimSpace(unnamed.Replace(s)) }
