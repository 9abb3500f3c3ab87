package spool_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	strict "github.com/go-json-experiment/json"

	"yardmaster/internal/box/spool"
	"yardmaster/internal/protocol"
)

// TestImproperUpdates holds that any update of an agent reaches a strict reader in
// some form, and does not block later events.
func TestImproperUpdates(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) }
	for name, c := range map[string]struct{ raw, want string }{
		"proper": {`{"sessionUpdate":"x","n":12345678901234567890,"t":"é\u2028<"}`,
			`{"sessionUpdate":"x","n":12345678901234567890,"t":"é\u2028<"}`},
		"a name twice":       {`{"sessionUpdate":"x","a":{"b":1,"b":2}}`, `{"a":{"b":2},"sessionUpdate":"x"}`},
		"half a character":   {`{"sessionUpdate":"x","t":"cut \ud83d"}`, `{"sessionUpdate":"x","t":"cut \ufffd"}`},
		"no UTF-8":           {"{\"sessionUpdate\":\"x\",\"t\":\"\xff\",\"\xfe\":1}", `{"sessionUpdate":"x","t":"\ufffd","\ufffd":1}`},
		"nested":             {deep(200), deep(200)},
		"nested for ever":    {deep(9998), strings.Repeat(`{"a":[`, 64) + "null" + strings.Repeat("]}", 64)},
		"no JSON":            {`{"a":`, `{}`},
		"two values":         {`{} {}`, `{}`},
		"a name twice, wide": {`{"a":1,"a":"` + strings.Repeat("<", 70_000) + `"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), spool.Options{})
			s.Update(json.RawMessage(c.raw))
			s.Permission(json.RawMessage(c.raw))
			if err := s.Append(protocol.EventFinished, protocol.Finished{State: protocol.Succeeded}); err != nil {
				t.Fatal(err)
			}
			var got []protocol.Event
			for next := int64(1); next <= s.Last(); next++ {
				e, err := s.Read(next, 1, 1)
				if err != nil || len(e) != 1 {
					t.Fatal(err)
				}
				text, err := strict.Marshal(protocol.Envelope{Events: e})
				if err != nil || len(text) > protocol.MaxMessage {
					t.Fatalf("event %d, of %d bytes, cannot be sent: %v", next, len(text), err)
				}
				got = append(got, e...)
			}
			if got[len(got)-1].Kind != protocol.EventFinished || got[0].Kind != protocol.EventUpdate {
				t.Fatalf("%v", got)
			}
			if c.want == "" {
				return
			}
			var a, b any
			if err := errors.Join(json.Unmarshal(got[0].Data, &a), json.Unmarshal([]byte(c.want), &b)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(a, b) || got[1].Kind != protocol.EventPermission {
				t.Fatalf("%.300s, want %.300s", got[0].Data, c.want)
			}
		})
	}
}

// TestManySmallUpdates holds that empty updates and permission requests count for
// the cap like others.
func TestManySmallUpdates(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{TextTotal: 10_000})
	for range 1000 {
		s.Update(json.RawMessage("0"))
		s.Permission(json.RawMessage("{}"))
	}
	if n := s.Last(); n > 100 {
		t.Fatalf("%d events", n)
	}
}
