package app

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// naming are the calls of boxes that name something, as one about a run would make them that is
// not the caller's to name, and what the answer to such a call may not be.
type naming struct {
	in    func(protocol.RunRef) any
	taken func(answer json.RawMessage) bool // nil: it is answered alike, and does nothing
}

// callsNaming are made once for each event that an envelope may hold.
func callsNaming(s *station, command, claim, trial, word string) map[string][]naming {
	decoded := func(answer json.RawMessage, into any) bool {
		err := json.Unmarshal(answer, into)
		if err != nil {
			s.t.Error(err)
		}
		return err == nil
	}
	renewed := func(answer json.RawMessage) bool {
		var out protocol.Renewal
		return !decoded(answer, &out) || out.OK
	}
	anything := func(json.RawMessage) bool { return true }
	calls := map[string][]naming{
		protocol.CallAccept:   {{func(r protocol.RunRef) any { return protocol.Accept{Run: r.Run, Attempt: r.Attempt} }, renewed}},
		protocol.CallRenew:    {{func(r protocol.RunRef) any { return protocol.Renew{Run: r.Run, Attempt: r.Attempt} }, renewed}},
		protocol.CallGitToken: {{func(r protocol.RunRef) any { return protocol.GitTokenAsk{Run: r.Run, Attempt: r.Attempt} }, anything}},
		protocol.CallSecrets:  {{func(r protocol.RunRef) any { return protocol.SecretsAsk{Run: r.Run, Attempt: r.Attempt} }, anything}},
		protocol.CallArtifact: {{func(r protocol.RunRef) any {
			return protocol.ArtifactAsk{Run: r.Run, Attempt: r.Attempt, Name: "a.txt", Type: "text/plain", Size: 1,
				SHA256: strings.Repeat("a", 64)}
		}, anything}},
		protocol.CallHello: {{func(r protocol.RunRef) any { return s.hello(r) }, func(answer json.RawMessage) bool {
			var out protocol.HelloReply
			goesOn := func(v protocol.RunVerdict) bool { return v.Do != protocol.DoKill }
			return !decoded(answer, &out) || slices.ContainsFunc(out.Runs, goesOn)
		}}},
		protocol.CallBeat: {{func(r protocol.RunRef) any {
			return protocol.Presence{State: "ready", Slots: 4, Free: 4, Runs: []protocol.RunRef{r}}
		}, nil}},
		protocol.CallClaim: {{func(protocol.RunRef) any { return protocol.Claim{ID: claim} }, func(answer json.RawMessage) bool {
			var out protocol.ClaimReply
			return !decoded(answer, &out) || out.Run != nil || out.Sealed != ""
		}}},
		protocol.CallDone: {{func(r protocol.RunRef) any { return protocol.Done{IDs: []string{command, r.Run}} }, nil}},
		protocol.CallCommands: {{func(protocol.RunRef) any { return struct{}{} }, func(answer json.RawMessage) bool {
			var out protocol.Commands
			return !decoded(answer, &out) || len(out.Commands) > 0
		}}},
		protocol.CallTrialDone: {{func(protocol.RunRef) any {
			return protocol.TrialDone{ID: trial, Version: "9.9.9", Word: word}
		}, anything}},
		// What these are given is the caller's own, whatever they name.
		protocol.CallTrial: nil, protocol.CallCredential: nil, protocol.CallPing: nil,
	}
	commit := strings.Repeat("a", 40)
	data := json.RawMessage(`{"id":"x","state":"succeeded","tip":"` + commit + `","sha":"` + commit + `","wip":true,"title":"FORGED",` +
		`"body":"FORGED","kind":"decision","question":"FORGED","report":"FORGED","agent":"builtin"}`)
	for _, kind := range protocol.EventKinds() {
		says := func(r protocol.RunRef) any {
			return protocol.Envelope{V: protocol.Version, Run: r.Run, Attempt: r.Attempt,
				Events: []protocol.Event{{Seq: r.Seq + 1, Kind: kind, Data: data}}}
		}
		calls[protocol.CallAppend] = append(calls[protocol.CallAppend], naming{says, func(answer json.RawMessage) bool {
			var out protocol.Appended
			return !decoded(answer, &out) || !out.Closed
		}})
	}
	return calls
}

// TestForgedRuns walks what a box may call, and in it every kind of event, against the runs that
// are not its to name: of another account, of another box of its account, one of its own that has
// ended, another attempt than its own is, none at all. None of it is taken, and nothing of
// either account moves.
func TestForgedRuns(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../protocol/protocol.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.push("acme/widgets", map[string]string{"README.md": "Widgets.\n"})
			y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(http.StatusCreated)
			y.send("PUT", "/v1/secrets/OPEN_SECRET", y.owner, `{"value": "the canary of acme"}`).want(http.StatusOK)
			rival := y.tenant("rival")
			bob := y.person("bob", rival, policy.Owner)
			theirs := y.mint(rival, &bob, policy.Owner.Ceiling(), nil)
			held := func(s *station, claim string) protocol.RunRef {
				t.Helper()
				y.send("POST", "/v1/tasks", y.owner,
					`{"repo": "acme/widgets", "title": "Do `+claim+`", "problem": "Do it."}`).want(http.StatusAccepted)
				var out protocol.ClaimReply
				if err := s.ask(protocol.CallClaim, protocol.Claim{ID: claim, Free: 4, WaitMS: 5000}, &out); err != nil || out.Run == nil {
					t.Fatalf("the claim %s: %+v %v", claim, out, err)
				}
				begun := protocol.Envelope{V: protocol.Version, Run: out.Run.Run, Attempt: out.Run.Attempt, Events: []protocol.Event{
					{Seq: 1, Kind: protocol.EventAccepted}, {Seq: 2, Kind: protocol.EventStarted, Data: []byte(`{"agent":"builtin"}`)}}}
				if err := s.ask(protocol.CallAppend, begun, nil); err != nil {
					t.Fatal(err)
				}
				return protocol.RunRef{Run: out.Run.Run, Attempt: out.Run.Attempt, Seq: 2}
			}
			victim := y.station(y.owner)
			victims := held(victim, "claim-of-victim")
			command, trial := id.New(), id.New()
			y.in(y.acct, func(tx *db.Tx) error {
				return y.parts.box.Enqueue(tx, victim.ID, protocol.Command{ID: command, Kind: protocol.CommandUpdate})
			})
			var given protocol.Trial
			if err := victim.ask(protocol.CallTrial, protocol.TrialClaim{ID: trial, Version: "9.9.9"}, &given); err != nil {
				t.Fatal(err)
			}
			word, err := victim.secret.Open(protocol.TokensPurpose(trial), given.Sealed)
			if err != nil {
				t.Fatal(err)
			}
			sibling, evil := y.station(y.owner), y.station(theirs)
			own := held(sibling, "claim-of-sibling")
			over := own
			end := protocol.Envelope{V: protocol.Version, Run: over.Run, Attempt: 1, Events: []protocol.Event{
				{Seq: 3, Kind: protocol.EventFinished, Data: []byte(`{"state":"halted","failure_kind":"cancelled"}`)}}}
			if err := sibling.ask(protocol.CallAppend, end, nil); err != nil {
				t.Fatal(err)
			}
			over.Seq = 3
			live := held(sibling, "second-of-sibling")

			type wrong struct {
				what string
				s    *station
				ref  protocol.RunRef
			}
			wrongs := []wrong{
				{"of another account", evil, victims},
				{"of another box", sibling, victims},
				{"that has ended", sibling, over},
				{"that has ended, a later attempt", sibling, protocol.RunRef{Run: over.Run, Attempt: 2, Seq: 3}},
				{"there never was", evil, protocol.RunRef{Run: id.New(), Attempt: 1}},
			}
			for _, attempt := range []int{live.Attempt - 1, live.Attempt + 1, 0, -1} {
				ref := protocol.RunRef{Run: live.Run, Attempt: attempt, Seq: live.Seq}
				wrongs = append(wrongs, wrong{"of its own, another attempt", sibling, ref})
			}
			patience.Until(t, "the boxes are known to be online", func() bool {
				return strings.Count(strings.Join(append(y.snapshot(y.acct), y.snapshot(rival)...), "\n"), " box.online") == 3
			})
			before, beside := y.snapshot(y.acct), y.snapshot(rival)
			for _, w := range wrongs {
				calls := callsNaming(w.s, command, "claim-of-victim", trial, string(word))
				for _, m := range regexp.MustCompile(`(?m)^\tCall[A-Z]\w* += "([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
					if _, known := calls[m[1]]; !known {
						t.Fatalf("nobody has said what %s names", m[1])
					}
				}
				for method, each := range calls {
					for i, c := range each {
						if method == protocol.CallHello && w.s == sibling {
							continue // it would give up what it does not name
						}
						var answer json.RawMessage
						err := w.s.ask(method, c.in(w.ref), &answer)
						switch {
						case err == nil && c.taken != nil && c.taken(answer):
							t.Errorf("%s (%d) of a run %s is answered %s", method, i, w.what, answer)
						case err != nil && fault.IsKind(err, fault.Internal):
							t.Errorf("%s (%d) of a run %s: %v", method, i, w.what, err)
						}
					}
				}
			}
			if after := y.snapshot(y.acct); !slices.Equal(before, after) {
				t.Errorf("acme has changed:\n%s\n\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if after := y.snapshot(rival); !slices.Equal(beside, after) {
				t.Errorf("rival has changed:\n%s\n\n%s", strings.Join(beside, "\n"), strings.Join(after, "\n"))
			}
		})
	}
}
