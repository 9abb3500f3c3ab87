package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

func TestCall(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	type seen struct {
		method string
		failed bool
	}
	told := make(chan seen, 10)
	cfg.Observe = func(method string, took time.Duration, err error) {
		if told <- (seen{method, err != nil}); took <= 0 {
			t.Errorf("%s took %v", method, took)
		}
	}
	b := start(t, cfg)
	c := enrol(t, b, "bx").connect(t, b)
	err := b.Handle(protocol.CallAccept, func(_ context.Context, boxID string, data []byte) (any, error) {
		var in protocol.Accept
		if err := json.Unmarshal(data, &in); err != nil {
			return nil, err
		}
		switch in.Run {
		case "gone":
			return nil, fault.New(fault.Conflict, "attempt-fenced", "The attempt is over.")
		case "broken":
			return nil, errors.New("a secret detail")
		case "panics":
			panic("a bug")
		}
		return protocol.Renewal{OK: boxID == "bx" && in.Attempt == 3, LeaseMS: 60_000}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	call := func(run string) (r protocol.Renewal, err error) {
		err = c.Call(patience.Context(t), protocol.CallAccept, protocol.Accept{Run: run, Attempt: 3}, &r)
		return r, err
	}
	if got, err := call("r"); err != nil || !got.OK || got.LeaseMS != 60_000 {
		t.Errorf("got %+v, %v", got, err)
	}
	var f *fault.Error
	if _, err := call("gone"); !errors.As(err, &f) || f.Kind != fault.Conflict || f.Slug != "attempt-fenced" ||
		f.Detail != "The attempt is over." {
		t.Errorf("fault: %v", err)
	}
	for _, run := range []string{"broken", "panics"} {
		if _, err := call(run); !errors.As(err, &f) || f.Kind != fault.Internal || f.Detail != fault.From(errors.New("x")).Detail {
			t.Errorf("%s: %v", run, err)
		}
	}
	if err := c.Call(patience.Context(t), protocol.CallGitToken, protocol.GitTokenAsk{}, nil); !errors.Is(err, conn.ErrOffline) {
		t.Errorf("a method that nobody serves: %v", err)
	}
	// Told of once they are answered: one that went well, and three that did not.
	failed := map[bool]int{}
	for range 4 {
		s := patience.Receive(t, "what was observed", told)
		if s.method != protocol.CallAccept {
			t.Errorf("told of %+v", s)
		}
		failed[s.failed]++
	}
	if failed[false] != 1 || failed[true] != 3 {
		t.Errorf("told of %v", failed)
	}
	if s := b.State(); !s.Connected || s.Boxes != 1 || s.In < 4 || s.Out < 4 {
		t.Errorf("the bus is %+v", s)
	}
}

func TestThousandCallsWaitAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	const boxes, each = 5, 200
	arrived, release := make(chan string, boxes*each), make(chan struct{})
	err := b.Handle(protocol.CallClaim, func(ctx context.Context, boxID string, _ []byte) (any, error) {
		arrived <- boxID
		select {
		case <-release:
			return protocol.ClaimReply{Reasons: []string{boxID}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for i := range boxes {
		x := enrol(t, b, fmt.Sprintf("bx%d", i))
		c := x.connect(t, b)
		for range each {
			waiting.Go(func() {
				var got protocol.ClaimReply
				err := c.Call(patience.Context(t), protocol.CallClaim, protocol.Claim{}, &got)
				if err != nil || len(got.Reasons) != 1 || got.Reasons[0] != x.id {
					t.Errorf("%s got %+v, %v", x.id, got, err)
				}
			})
		}
	}
	for range boxes * each {
		patience.Receive(t, "call", arrived)
	}
	close(release)
	waiting.Wait()
}

func TestCallsOfOneBoxAreBounded(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	c := enrol(t, b, "bx").connect(t, b)
	arrived := make(chan struct{}, 1000)
	err := b.Handle(protocol.CallClaim, func(ctx context.Context, _ string, _ []byte) (any, error) {
		arrived <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make(chan error, 1000)
	call := func() { outcomes <- c.Call(patience.Context(t), protocol.CallClaim, protocol.Claim{}, nil) }
	for range 256 {
		go call()
	}
	for range 256 {
		patience.Receive(t, "call", arrived)
	}
	go call()
	if err := patience.Receive(t, "refusal", outcomes); !fault.IsKind(err, fault.RateLimited) {
		t.Errorf("one call too many: %v", err)
	}

	// Close ends the other calls at once, with an answer or by closing the connection.
	stop(t, b)
	for range 256 {
		if err := patience.Receive(t, "answer", outcomes); !fault.IsKind(err, fault.Unavailable) && !errors.Is(err, conn.ErrOffline) {
			t.Errorf("call cut short: %v", err)
		}
	}
}
