package mail

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Judge tells errors of the server from those of a letter.
func TestJudge(t *testing.T) {
	t.Parallel()
	if err := judge(context.DeadlineExceeded); !errors.Is(err, errDown) || errors.Is(err, errPermanent) {
		t.Errorf("no connection: %v", err)
	}
	for _, c := range []struct {
		code         int
		detail, text string
		gone         bool
	}{
		{550, "", "unknown user", true}, {550, "", "Relay not permitted", false}, {554, "", "no", false}, {550, "5.1.10", "x", true},
		{550, "5.7.1", "x", false}, {550, "5.2.2", "x", false}, {553, "", "x", true},
	} {
		if got := gone(c.code, c.detail, c.text); got != c.gone {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A mail is late from when it was to be sent: not while it waits for the end of quiet hours,
// and from their end on.
func TestOldest(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		o.Transport = &answers{errs: []error{errDown, errDown}}
		oldest := func() *time.Time { return read(o, o.Oldest) }
		m := welcome
		m.After = time.UnixMicro(o.clock.Load()).Add(8 * time.Hour)
		o.post(m)
		o.run()
		if at := oldest(); at != nil {
			t.Errorf("at night the oldest is of %v", at)
		}
		o.later(8 * time.Hour)
		for range 2 {
			o.run()
			if at := oldest(); at == nil || !at.Equal(m.After) {
				t.Errorf("in the morning the oldest is of %v", at)
			}
			o.later(time.Hour)
		}
		o.run()
		if at := oldest(); at != nil {
			t.Errorf("once it is sent the oldest is of %v", at)
		}
	})
}
