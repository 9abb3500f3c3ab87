package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// TestHostileCalls holds that every call of a box is answered, or refused with
// a fault that names the reason: none fails with an internal error, which would
// be logged as our own, and none panics.
func TestHostileCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.newSealKey(f.boxes[0])
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		methods := map[string]func(context.Context, string, []byte) (any, error){
			protocol.CallClaim: call(f.claimSealed), protocol.CallAccept: call(f.Accept), protocol.CallRenew: call(f.Renew),
			protocol.CallAppend: call(f.Append), protocol.CallGitToken: call(f.GitToken), protocol.CallSecrets: call(f.Secrets),
			"hello": call(func(ctx context.Context, boxID string, refs []protocol.RunRef) ([]protocol.RunVerdict, error) {
				return f.Verdicts(ctx, boxID, refs)
			}),
		}
		body := func(v any) string {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		bodies := []string{"", "null", "0", "[]", "{}", `"x"`, "\x00", "\xff\xfe", strings.Repeat("[", 200_000), `{"run":null}`,
			`{"attempt":1e400}`}
		strange := []string{"", "\x00", "a\x00b", "\u202e", "'; --", strings.Repeat("9", 100_000), "../..", st.Run, "\ufffd"}
		for _, s := range strange {
			for _, n := range []int{math.MinInt64, -1, 0, 1, math.MaxInt64} {
				bodies = append(bodies, body(map[string]any{"run": s, "attempt": n, "seq": n, "id": s[:min(len(s), 100)], "free": n,
					"wait_ms": min(n, 1)}))
				bodies = append(bodies, body([]map[string]any{{"run": s, "attempt": n, "seq": n}}))
			}
			for _, data := range []string{"null", `"\u0000"`,
				`{"id":"\u0000","title":"\u0000","body":"\u0000","kind":"decision","question":"\u0000"}`,
				`{"sha":"\u0000","paths":["\u0000"],"wip":true,"base":"\u0000"}`,
				`{"agent":"\u0000","model":"a\u0000b\ud800","version":"\u0000"}`, `{"id":7}`, `[1]`, ""} {
				e := protocol.Envelope{V: protocol.Version, Run: s, Attempt: 1}
				for i, kind := range []string{s[:min(len(s), 100)], protocol.EventAccepted, protocol.EventPrepared, protocol.EventStarted,
					protocol.EventPushed, protocol.EventParked,
					protocol.EventResumed, protocol.EventAsk, protocol.EventBlocker, protocol.EventUsage, protocol.EventMessage} {
					e.Events = append(e.Events, protocol.Event{Seq: int64(i) + 1, T: math.MinInt64, Mono: math.MaxInt64, Kind: kind,
						Data: json.RawMessage(data)})
				}
				for _, first := range []int64{math.MaxInt64 - 5, math.MinInt64, 0, f.run(f.boxes[0], st.Run).CommittedSeq + 1} {
					for i := range e.Events {
						e.Events[i].Seq = first + int64(i)
					}
					bodies = append(bodies, body(e))
				}
			}
		}
		random := rand.New(rand.NewPCG(chance.Seed(t), 2))
		for range 200 { // bytes of a good call turned over
			text := []byte(bodies[random.IntN(len(bodies))])
			for range min(len(text), 3) {
				text[random.IntN(len(text))] = byte(random.IntN(256))
			}
			bodies = append(bodies, string(text))
		}
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			for _, text := range bodies {
				_, err := methods[method](t.Context(), f.boxes[0], []byte(text))
				if err != nil && fault.From(err).Kind == fault.Internal {
					t.Errorf("%s %.200q fails inside: %.300v", method, text, fmt.Sprint(err))
				}
			}
		}
	})
}

// TestVeryManyEvents holds that an envelope of very many events is refused: it
// would delay the events of other boxes.
func TestVeryManyEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		many := slices.Repeat([]protocol.Event{ev(protocol.EventAsk, protocol.AskFiled{})}, protocol.MaxEvents+1)
		if err := f.say(f.boxes[0], st, 5, many...); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("%d events at once: %v", len(many), err)
		}
		f.mustSay(f.boxes[0], st, 5, many[1:]...)
	})
}

// TestManyTokens holds that only the last tokens of a run are stored, however
// often its box asks for new ones.
func TestManyTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.newSealKey(f.boxes[0])
		f.create(task.KindWork)
		var st *protocol.Start
		for range 10 {
			reply, err := f.Claim(t.Context(), f.boxes[0], protocol.Claim{ID: "the same", Free: 1})
			if err != nil || reply.Run == nil {
				t.Fatalf("claim: %+v %v", reply, err)
			}
			st = reply.Run
			if _, err := f.GitToken(t.Context(), f.boxes[0], protocol.GitTokenAsk{Run: st.Run, Attempt: st.Attempt}); err != nil {
				t.Fatal(err)
			}
		}
		f.write(func(tx *db.Tx) error {
			n, err := countTokens.One(tx, st.Run)
			if n != 2 || !f.live(st.ModelToken, TokenModel) || f.live(st.GitToken, TokenGit) {
				t.Errorf("%d tokens are kept", n)
			}
			return err
		})
	})
}

var countTokens = db.Q[int64](`SELECT COUNT(*) FROM run_tokens WHERE run_id = $1`)

// TestManyClaims holds that few claims of one box wait at once: each costs the
// database work whenever a queue changes.
func TestManyClaims(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const n = 50
		replies := make(chan protocol.ClaimReply, n)
		for i := range n {
			go func() {
				reply, err := f.Claim(context.Background(), f.boxes[0], protocol.Claim{ID: fmt.Sprint(i), Free: 1, WaitMS: 25_000})
				if err != nil {
					t.Error(err)
				}
				replies <- reply
			}()
		}
		for range n - claimsWaiting {
			select {
			case reply := <-replies:
				if fmt.Sprint(reply.Reasons) != "[claim_dismissed]" {
					t.Errorf("a claim of many is answered %+v", reply)
				}
			case <-patience.Over(t):
				t.Fatal("the claims of one box all wait")
			}
		}
		for left := claimsWaiting; left > 0; { // no claim waits when the database is closed
			f.Dismiss(f.boxes[0])
			select {
			case <-replies:
				left--
			default:
			}
		}
	})
}
