package delivery

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/proof/patience"
)

// counted is a body that counts how much of it was read.
type counted struct {
	io.Reader
	read int
}

// Read implements io.Reader.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += n
	return n, err
}

// However many forged deliveries an address sends, what is signed is taken from there: others
// of the host send from it, too. What names another App is never read.
func TestForgedShutNobodyOut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		row := y.Ops()[0]
		p := &op.Pipeline{BaseURL: "http://yard", Limits: limit.New(y.clock)}
		send := func(h headers, ip string) (status, read int) {
			body := &counted{Reader: strings.NewReader(`"a"`)}
			a := p.Do(y.ctx, &op.Call{Op: &row, Request: op.Request{IP: ip}, Sent: op.Sent{
				Texts: h, Body: body, Length: 3, ContentType: "application/json",
			}})
			return a.Status, body.read
		}
		forged := headers{"X-App": "ours", "X-Signature": "other", "X-GUID": "1"}
		for range op.PerAddress {
			if status, _ := send(forged, "192.0.2.1"); status != 401 {
				t.Fatalf("forged: %d", status)
			}
		}
		if status, _ := send(forged, "192.0.2.1"); status != 429 {
			t.Errorf("too many: %d", status)
		}
		for i := range 3 {
			if status, _ := send(headers{"X-App": "ours", "X-Signature": "sig", "X-GUID": fmt.Sprint("s", i)}, "192.0.2.1"); status != 200 {
				t.Errorf("signed, from the same address: %d", status)
			}
		}
		if status, read := send(headers{"X-App": "theirs", "X-Signature": "sig"}, "192.0.2.2"); status != 401 || read != 0 {
			t.Errorf("of another App: %d, %d bytes were read", status, read)
		}
		y.wait(2 * time.Minute)
		if status, _ := send(forged, "192.0.2.1"); status != 401 {
			t.Errorf("after a minute: %d", status)
		}
	})
}

// stuck is a body that comes to no end before the server ends it.
type stuck struct {
	begun chan<- struct{}
	end   <-chan struct{}
}

// Read implements io.Reader.
func (s stuck) Read([]byte) (int, error) {
	s.begun <- struct{}{}
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// The largest delivery is stored whole. Of large ones a server reads 8 at once, and of one
// address 4: a place is free when its read has ended, and not before. Senders of signed ones have
// places besides.
func TestLarge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		if got := y.deliver("big", `"`+strings.Repeat("a", maxBody-2)+`"`); got != 200 {
			t.Fatalf("25 MiB: %d", got)
		}
		y.pass()
		if len(y.applied) != 1 || len(y.applied[0]) != len("elsewhere ")+maxBody-2 {
			t.Fatalf("%d were applied", len(y.applied))
		}
		row := y.Ops()[0]
		p := &op.Pipeline{BaseURL: "http://yard"}
		send := func(ip, guid string, body io.Reader, length int64) int {
			return p.Do(y.ctx, &op.Call{Op: &row, Request: op.Request{IP: ip}, Sent: op.Sent{
				Texts: headers{"X-App": "ours", "X-Signature": "sig", "X-GUID": guid}, Body: body, Length: length,
				ContentType: "application/json",
			}}).Status
		}
		whole := func() (io.Reader, int64) { return strings.NewReader(`"` + strings.Repeat("a", large) + `"`), large + 2 }
		begun, end := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		hold := func(ip string) {
			all.Go(func() { send(ip, "stuck", stuck{begun, end}, 2*large) })
			patience.Receive(t, "a body", begun)
		}
		for range largeOfOne {
			hold("192.0.2.1")
		}
		body, n := whole()
		if got := send("192.0.2.1", "same", body, n); got != 503 {
			t.Errorf("more than the share of an address: %d", got)
		}
		if got := send("192.0.2.2", "other", body, n); got != 200 {
			t.Errorf("another address: %d", got)
		}
		for range largeAtOnce - largeOfOne {
			hold("192.0.2.3")
		}
		if body, n = whole(); send("192.0.2.9", "busy", body, n) != 503 {
			t.Error("one more large one is read than there are places")
		}
		if got := send("192.0.2.2", "known", body, n); got != 200 {
			t.Errorf("from where a signed one has come, while strangers have all places: %d", got)
		}
		body, n = whole()
		if got := y.deliver("small", `"a"`); got != 200 {
			t.Errorf("a small one: %d", got)
		}
		y.wait(24 * time.Hour)
		if got := send("192.0.2.9", "waiting", body, n); got != 503 {
			t.Errorf("while others are read, however long that takes: %d", got)
		}
		close(end)
		all.Wait()
		if got := send("192.0.2.9", "later", body, n); got != 200 {
			t.Errorf("when the others have ended: %d", got)
		}
	})
}
