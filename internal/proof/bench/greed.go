package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

const (
	greedLimit  = 1.5
	greedConns  = "4096" // of the server; the account that wants them all is given what it gives by default of these
	greedTokens = 12     // of the account that wants all, each of a person
	greedCalls  = 600    // of the other account, one after the other, in a round
	greedRounds = 6
	greedIdle   = 2000
)

// rival adds an account to a stopped server, and answers tokens of its people.
func (w *world) rival(ctx context.Context) (pats []string, err error) {
	d, err := db.Open(ctx, "sqlite:"+w.database(), db.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	acct := id.New()
	err = d.Write(db.WithAccount(ctx, acct), func(tx *db.Tx) error {
		pats = nil
		if err := seed.Add(tx, seed.Account{ID: acct, Login: "rival"}); err != nil {
			return err
		}
		for i := range greedTokens {
			user := id.New()
			if err := seed.Add(tx, seed.User{ID: user, Login: fmt.Sprint("rival-", i)},
				seed.Member{Account: acct, User: user, Role: "owner"}); err != nil {
				return err
			}
			t, err := token.Mint(tx, policy.PAT, user, nil, policy.Owner.Ceiling(), nil)
			if err != nil {
				return err
			}
			pats = append(pats, t.Token)
		}
		return nil
	})
	return pats, err
}

// hand is what one account holds open.
type hand struct {
	url   string
	n     int // connections that were begun: each comes from an address of its own, as far as there are
	conns []net.Conn
}

// take begins a request and keeps it if its answer begins with want, which it tells.
func (h *hand) take(ctx context.Context, request, want string) (held bool, err error) {
	h.n++
	from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(h.n/200), byte(1+h.n%200))}
	d := net.Dialer{LocalAddr: from, Timeout: 10 * time.Second}
	c, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		return false, err
	}
	if request == "" {
		h.conns = append(h.conns, c)
		return true, nil
	}
	if _, err = io.WriteString(c, request); err == nil {
		err = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	}
	line := ""
	if err == nil {
		line, err = bufio.NewReader(c).ReadString('\n')
	}
	if err != nil || !strings.Contains(line, want) {
		return false, errors.Join(err, c.Close())
	}
	h.conns = append(h.conns, c)
	go func() { _, _ = io.Copy(io.Discard, c) }() // a stream is read
	return true, nil
}

// grabs are the requests of which an account takes as many as it is given. A push beyond those that go on at once waits its
// turn, so no credential begins more.
var grabs = []struct {
	text, want string
	basic      bool
	most       int // of a credential
}{
	{text: "GET /v1/streams?topics=tasks HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", want: " 200 ", most: math.MaxInt},
	{text: "POST /git/rival/proj.git/git-receive-pack HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic %s\r\n" +
		"Content-Type: application/x-git-receive-pack-request\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
		want: " 100 ", basic: true, most: smarthttp.AtOnce},
	{text: "POST /v1/asks HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n" +
		"Content-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", want: " 100 ", most: math.MaxInt},
}

// grab takes as much as the account is given, and connections on which nothing is said, and answers how many of each.
func (h *hand) grab(ctx context.Context, pats []string) (taken []int, err error) {
	taken = make([]int, len(grabs))
	for i, g := range grabs {
		for _, pat := range pats {
			if g.basic {
				pat = base64.StdEncoding.EncodeToString([]byte("x:" + pat))
			}
			for n := 0; n < g.most; n++ {
				held, err := h.take(ctx, fmt.Sprintf(g.text, pat), g.want)
				if err != nil {
					return taken, err
				}
				if !held {
					break
				}
				taken[i]++
			}
		}
	}
	for range greedIdle {
		if _, err := h.take(ctx, "", ""); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

func (h *hand) leave() {
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

// paced calls one after the other and answers how long each took.
func paced(ctx context.Context, l load, n int) (times []time.Duration, err error) {
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for i := range n {
		begin := time.Now()
		if err := l.one(ctx, c, int64(i)); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
	}
	return times, nil
}

// greed measures what the calls of one account take while another holds all that it is given.
func greed(ctx context.Context, b *bench) error {
	args := []string{"--most-streams", "20", "--most-streams-account", "200", "--most-connections", greedConns,
		"--most-connections-address", "0", "--body-timeout", "10m"}
	w, err := b.settle(ctx, "greed", args...)
	if err != nil {
		return err
	}
	w.process.stop()
	pats, err := w.rival(ctx)
	if err == nil {
		w.process, _, err = b.serve(ctx, w.data, args...)
	}
	if err != nil {
		return err
	}
	defer w.stop()
	var number atomic.Int64
	kinds := []struct {
		what string
		load load
	}{
		{"GET /v1/tasks", load{method: http.MethodGet, url: w.url + "/v1/tasks?per_page=50", token: w.pat, status: http.StatusOK}},
		{"POST /v1/tasks", load{method: http.MethodPost, url: w.url + "/v1/tasks", token: w.pat, status: http.StatusAccepted,
			body: func(int64) []byte { return filing(number.Add(1)) }}},
	}
	alone, beside := make([][]time.Duration, len(kinds)), make([][]time.Duration, len(kinds))
	var taken []int
	for range greedRounds {
		for turn, to := range [][][]time.Duration{alone, beside} {
			h := &hand{url: w.url}
			if turn == 1 {
				if taken, err = h.grab(ctx, pats); err != nil {
					h.leave()
					return err
				}
			}
			w.rest(ctx)
			for i, k := range kinds {
				times, err := paced(ctx, k.load, greedCalls)
				if err != nil {
					h.leave()
					return err
				}
				to[i] = append(to[i], times...)
			}
			h.leave()
			w.rest(ctx)
		}
	}
	for i, k := range kinds {
		ours, theirs := percentile(beside[i], 99), percentile(alone[i], 99)
		r := ratio(ours, theirs)
		b.add(row{what: fmt.Sprintf("%s beside %d streams, %d pushes, %d calls and %d connections of another account, p99", k.what,
			taken[0], taken[1], taken[2], greedIdle),
			value: ms(ours), baseline: ms(theirs), ratio: r, target: fmt.Sprintf("≤ %.2f of without", greedLimit), met: r <= greedLimit})
		b.add(row{what: "the same, p50", value: ms(percentile(beside[i], 50)), baseline: ms(percentile(alone[i], 50))})
	}
	return nil
}
