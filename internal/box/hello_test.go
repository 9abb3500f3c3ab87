package box

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"yardmaster/internal/box/conn"
)

// TestOutageIsLoggedOnce holds that a box without a connection logs that once, and
// not at every attempt to connect.
func TestOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := &box{log: slog.New(slog.NewTextHandler(&log, nil)), life: t.Context(), online: make(chan struct{}, 1),
		beat: make(chan struct{}, 1)}
	for range 2 {
		b.onState(conn.State{Connected: true})
		for range 100 {
			b.onState(conn.State{Err: errors.New("refused")})
		}
	}
	b.onState(conn.State{Connected: true})
	if out, in := strings.Count(log.String(), "out of reach"), strings.Count(log.String(), "msg=\"connected"); out != 2 || in != 3 {
		t.Errorf("%d lines of an outage, %d of a connection:\n%s", out, in, log.String())
	}
}
