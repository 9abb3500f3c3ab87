package webpush_test

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"yardmaster/internal/dial"
	"yardmaster/internal/webpush"
	"yardmaster/internal/webpush/pushtest"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A browser reads what it is sent, and its service can tell who sent it.
func TestSend(t *testing.T) {
	t.Parallel()
	keys, err := webpush.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	service := pushtest.New(t)
	to := service.Browser()
	sender := webpush.NewSender(dial.NewGuard(loopback), keys, "https://ym.example.com")
	m := webpush.Message{Body: []byte(`{"title": "é"}`), Topic: "abc", Urgent: true, Life: time.Hour}
	if out := sender.Send(t.Context(), to, m); !out.Sent {
		t.Fatalf("%+v", out)
	}
	got := service.Messages()
	if len(got) != 1 || string(got[0].Body) != string(m.Body) || got[0].Topic != "abc" || got[0].Urgency != "high" || got[0].TTL != 3600 ||
		got[0].Subject != "https://ym.example.com" || got[0].Key != sender.PublicKey() {
		t.Errorf("%+v", got)
	}
	for status, want := range map[int]webpush.Outcome{
		404: {Gone: true}, 410: {Gone: true}, 429: {After: time.Minute}, 500: {After: time.Minute}, 400: {Never: true}, 413: {Never: true},
		302: {Never: true},
	} {
		service.Answer(func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "60")
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
		})
		out := sender.Send(t.Context(), to, m)
		if out.Why == "" || out.Sent || out.Gone != want.Gone || out.Never != want.Never || out.After != want.After {
			t.Errorf("%d: %+v", status, out)
		}
	}
	if out := webpush.NewSender(dial.NewGuard(nil), keys, "x").Send(t.Context(), to, m); out.Sent || out.Gone || out.Never {
		t.Errorf("inside of the network of the server: %+v", out)
	}
	if out := sender.Send(t.Context(), to, webpush.Message{Body: make([]byte, webpush.MaxMessage+1)}); !out.Never {
		t.Errorf("too large: %+v", out)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := pushtest.New(t).Browser()
	if field, _ := good.Check(); field != "" {
		t.Error(field)
	}
	bad := good
	bad.P256DH = "BBBB" + good.P256DH[4:]
	if field, _ := bad.Check(); field != "p256dh" {
		t.Error("a point that is on no curve is taken")
	}
	bad = good
	bad.Auth += "AA"
	if field, _ := bad.Check(); field != "auth" {
		t.Error("a secret of another length is taken")
	}
}
