package builtin

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
)

// A push that does not fit is refused with one sentence, and nothing of it is kept: before
// its pack comes if there is no room at all, and else as soon as there is none. Deleting
// needs no room, and what fits is taken.
func TestPushThatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := start(t, s, shop)
	s.allow("ann", shop, codehost.Access{Read: true, Push: []string{"refs/heads/*"}, Account: "acme"})
	w.git("remote", "add", "site", s.remote("ann", shop))
	w.git("checkout", "-q", "-b", "small")
	w.commit("small", "small", noise(100_000))
	w.git("checkout", "-q", "-b", "big", "main")
	w.commit("big", "big", noise(4*megabyte))
	before := s.size(t)
	for _, left := range []int64{0, megabyte} {
		s.mu.Lock()
		s.left = func() int64 { return left }
		s.mu.Unlock()
		out := w.fails("push", "site", "big")
		if strings.Count(out, "the account is full: ask an operator") != 1 || strings.Contains(out, "fatal:") ||
			!strings.Contains(out, "! [remote rejected] big") {
			t.Errorf("%d left: %s", left, out)
		}
		if n := s.size(t); n != before && n > before+100 { // the file of the lock
			t.Errorf("%d left: the repository had %d bytes and has %d", left, before, n)
		}
	}
	if e := s.heard(); len(e) > 0 {
		t.Errorf("%v were told of", e)
	}
	w.git("push", "-q", "site", "small")
	s.mu.Lock()
	s.left = func() int64 { return 0 }
	s.mu.Unlock()
	w.git("push", "-q", "site", ":small")
	if len(s.flows.all) > 0 {
		t.Errorf("pushes are counted that are over: %v", s.flows.all)
	}
}

// A push takes on the disk what was measured of it, its pack: versions that differ by little are not
// unpacked to their full size, however few they are.
func TestPushTakesWhatWasMeasured(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := start(t, s, shop)
	s.allow("ann", shop, codehost.Access{Read: true, Push: []string{"refs/heads/*"}, Account: "acme"})
	w.git("remote", "add", "site", s.remote("ann", shop))
	w.git("checkout", "-q", "-b", "versions", "main")
	text := noise(megabyte)
	for i := range 8 {
		w.commit(strings.Repeat("v", i+1), "big", text+strings.Repeat("x", i))
	}
	w.git("repack", "-adq")
	before := s.size(t)
	w.git("push", "-q", "site", "versions")
	if n := s.size(t) - before; n > 3*megabyte {
		t.Errorf("eight versions of a megabyte, which differ by a byte, take %d bytes", n)
	}
}

// Pushes that come at once share what is left.
func TestPushesShareTheRoom(t *testing.T) {
	t.Parallel()
	h := &Host{}
	begin := func(left int64) *room {
		t.Helper()
		q := &request{host: h, access: codehost.Access{Account: "acme"}, hooks: Hooks{
			Room: func(context.Context, string) (int64, string, error) { return left, "full", nil },
		}}
		r, err := q.room(t.Context(), smarthttp.Push{Updates: []codehost.RefUpdate{{Ref: "refs/heads/a", New: strings.Repeat("1", 40)}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	read := func(r *room, n int) bool {
		buf := make([]byte, n)
		_, err := r.limit(bytes.NewReader(buf)).Read(buf)
		return err == nil
	}
	a := begin(100)
	if !read(a, 60) {
		t.Error("60 of 100 do not fit")
	}
	b := begin(100)
	if !read(b, 40) || read(a, 1) || read(b, 1) || !a.over() || !b.over() {
		t.Error("two pushes had more than there was")
	}
	a.leave()
	b.leave()
	c := begin(1)
	if !read(c, 1) || read(c, 1) {
		t.Error("a push after them has not what is left")
	}
	c.leave()
}
