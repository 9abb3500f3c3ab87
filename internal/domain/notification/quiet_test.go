package notification

import (
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
)

// hourly makes a link that works for an hour from when its mail leaves.
type hourly struct{}

func (hourly) For(_ *db.Tx, _ string, leaves time.Time) ([]Link, error) {
	return []Link{{Label: "Fill it in", URL: "https://example.com/" + leaves.Add(time.Hour).UTC().Format(time.RFC3339)}}, nil
}

// In quiet hours mails wait for the morning, those of urgent kinds excepted. A link that works
// for some time works from then on.
func TestQuiet(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		p.set("bob", setIn{Quiet: new("22:00-07:00 Europe/Berlin")})
		p.now = time.Date(2026, 3, 2, 22, 30, 0, 0, time.UTC) // 23:30 in Berlin
		night := waits("t1")
		night.Links = hourly{}
		p.tell(night)
		if len(p.letters) != 0 || len(p.inbox("bob")) != 1 {
			p.t.Fatalf("at night: %+v", p.letters)
		}
		urgent := waits("e1")
		urgent.Kind, urgent.Noun = Escalation, "escalation"
		p.tell(urgent)
		if len(p.letters) != 1 || !strings.Contains(p.letters[0].Subject, "Failed") {
			p.t.Errorf("urgent: %+v", p.letters)
		}
		p.now = time.Date(2026, 3, 3, 6, 0, 0, 0, time.UTC)
		p.send()
		if len(p.letters) != 2 {
			p.t.Errorf("in the morning: %d mails", len(p.letters))
		} else if text := p.letters[1].Text; !strings.Contains(text, "https://example.com/2026-03-03T07:00:00") {
			p.t.Errorf("the link of a mail that leaves at 6:00 UTC ends otherwise: %s", text)
		}
	})
}
