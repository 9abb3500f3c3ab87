package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	listeners   = 5000
	streamWait  = 250 * time.Millisecond
	streamBytes = 40 << 10
	changes     = 10
)

// audience is a number of connections that follow the same stream.
type audience struct {
	size  int
	conns []net.Conn

	mu    sync.Mutex
	word  []byte
	left  int
	all   chan struct{}
	wrong error
}

// attend opens n connections, 50 at a time, and returns when each has received its
// first frames, up to one that contains word.
func attend(ctx context.Context, url, path, token, word string, n int) (*audience, error) {
	a := &audience{size: n}
	heard := a.expect(word, n)
	request := "GET " + path + " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	var d net.Dialer
	turns := make(chan struct{}, 50)
	var wg sync.WaitGroup
	for range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			c, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
			if err == nil {
				_, err = io.WriteString(c, request)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if err != nil {
				a.wrong = errors.Join(a.wrong, err)
				return
			}
			a.conns = append(a.conns, c)
			go a.listen(c)
		})
	}
	wg.Wait()
	return a, a.wait(ctx, heard)
}

// expect sets the word that the audience listens for; the channel is closed when n
// connections have received it.
func (a *audience) expect(word string, n int) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.word, a.left, a.all = []byte(word), n, make(chan struct{})
	return a.all
}

func (a *audience) wait(ctx context.Context, heard <-chan struct{}) error {
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	select {
	case <-heard:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Errorf("%d of %d listeners have not heard %q: %w", a.left, a.size, a.word, errors.Join(a.wrong, context.DeadlineExceeded))
}

func (a *audience) listen(c net.Conn) {
	r := bufio.NewReaderSize(c, 4<<10)
	var last []byte // the word that this connection received last
	for {
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return // closed by the audience; otherwise the wait for the others fails
		}
		a.mu.Lock()
		if !bytes.Equal(last, a.word) && bytes.Contains(line, a.word) {
			last = a.word
			if a.left--; a.left == 0 {
				close(a.all)
			}
		}
		a.mu.Unlock()
	}
}

func (a *audience) leave() {
	for _, c := range a.conns {
		c.Close()
	}
}

// crowd measures a server with listeners: the memory of each, and the time from
// sending a change until the last listener has it.
func crowd(
	ctx context.Context, p *process, path, token string, change func(word string) error,
) (each int64, times []time.Duration, err error) {
	if err := change("before"); err != nil {
		return 0, nil, err
	}
	empty, err := p.memory()
	if err != nil {
		return 0, nil, err
	}
	a, err := attend(ctx, p.url, path, token, "200 OK", listeners)
	if a != nil {
		defer a.leave()
	}
	if err != nil {
		return 0, nil, err
	}
	for i := range changes {
		word := fmt.Sprintf("change-%d.", i)
		heard := a.expect(word, listeners)
		begin := time.Now()
		if err := change(word); err != nil {
			return 0, nil, err
		}
		if err := a.wait(ctx, heard); err != nil {
			return 0, nil, err
		}
		times = append(times, time.Since(begin))
	}
	full, err := p.memory()
	return (full - empty) / listeners, times, err
}

// following measures many listeners of one account.
func following(ctx context.Context, b *bench) error {
	bare, _, err := b.launch(ctx, b.self, "baseline", "--events")
	if err != nil {
		return err
	}
	defer bare.stop()
	theirBytes, theirTimes, err := crowd(ctx, bare, "/events", "none", func(word string) error {
		resp, err := http.Post(bare.url+"/events", "text/plain", strings.NewReader(word))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("the bare server: %w", err)
	}
	w, err := b.settle(ctx, "streams")
	if err != nil {
		return err
	}
	defer w.stop()
	ourBytes, ourTimes, err := crowd(ctx, w.process, "/v1/streams?topics=tasks", w.pat, func(word string) error {
		return w.api.Call(ctx, http.MethodPost, "/v1/tasks",
			map[string]string{"repo": account + "/" + project, "title": word, "problem": "A widget turns left."}, nil)
	})
	if err != nil {
		return err
	}
	ours, theirs := median(ourTimes), median(theirTimes)
	b.add(row{what: fmt.Sprintf("task.create sent, until the last of %d has the patch", listeners), value: ms(ours),
		baseline: ms(theirs), ratio: ratio(ours, theirs), target: "≤ " + ms(streamWait), met: ours <= streamWait})
	b.add(row{what: "the same, slowest of 10", value: ms(percentile(ourTimes, 100)), baseline: ms(percentile(theirTimes, 100))})
	b.add(row{what: "resident memory of each listener", value: kb(ourBytes), baseline: kb(theirBytes),
		ratio: ratio(ourBytes, theirBytes), target: "< 40 KB", met: ourBytes < streamBytes})
	return nil
}

func kb(bytes int64) string { return fmt.Sprintf("%.1f KB", float64(bytes)/(1<<10)) }

// bareEvents sends every posted frame to all listeners.
type bareEvents struct {
	mu        sync.Mutex
	listeners map[chan []byte]bool
}

func (e *bareEvents) post(_ http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	frame := fmt.Appendf(nil, "event: patch\ndata: %s\n\n", b)
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.listeners {
		c <- frame
	}
}

func (e *bareEvents) get(w http.ResponseWriter, r *http.Request) {
	c := make(chan []byte, changes+1)
	e.mu.Lock()
	e.listeners[c] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.listeners, c)
		e.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for {
		if err := flush.Flush(); err != nil {
			return
		}
		select {
		case frame := <-c:
			if _, err := w.Write(frame); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
