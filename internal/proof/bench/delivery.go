package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/github"
	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/event"
)

const (
	hookSecret      = "a secret of webhooks"
	deliveryBytes   = 20 << 10 // of a body, about those of a pull request
	deliveryClients = 16
	deliveryRound   = 2 * time.Second
	deliveryRounds  = 3
)

// silence applies nothing.
type silence struct{}

// Apply implements delivery.Receiver.
func (silence) Apply(context.Context, string, codehost.Event) error { return nil }

// appAt is an App at a GitHub whose API has an address.
func appAt(folder, api string, now func() time.Time, limits pace.Limits) (*github.Host, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return github.New(github.Config{
		Name: "github:bench", Addresses: github.Addresses{Web: "https://github.com", API: api, GraphQL: api + "/graphql"},
		AppID: 7, Slug: "bench", Secrets: []string{hookSecret}, Folder: folder, Now: now, Limits: limits,
		Key:      pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		CloneURL: func(codehost.Repo) string { return "" },
	})
}

// deliveries measures how fast deliveries are stored and answered.
func deliveries(ctx context.Context, b *bench) error {
	d, err := db.Open(ctx, "sqlite:"+filepath.Join(b.dir, "deliveries.db"), db.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Migrated(ctx); err != nil {
		return err
	}
	host, err := appAt(filepath.Join(b.dir, "deliveries"), "http://127.0.0.1:1", time.Now, nil)
	if err != nil {
		return err
	}
	defer host.Close()
	hub := event.NewHub()
	s := delivery.New(delivery.Needs{
		Clock: time.Now, Due: due.New(due.Config{DB: d, Hub: hub, Logger: slog.New(slog.DiscardHandler)}),
		DB: d, Hub: hub, Receiver: silence{}, Logger: slog.New(slog.DiscardHandler),
		Hosts: codehost.NewHosts(map[string]codehost.Sides{"github:bench": host.Sides()}),
	})
	ours, stop, err := listen(ctx, rest.Handler(rest.Config{Pipeline: &op.Pipeline{
		BaseURL: "http://bench", Limits: limit.New(time.Now),
	}}, s.Ops()))
	if err != nil {
		return err
	}
	defer stop()
	bare, err := bareDeliveries(filepath.Join(b.dir, "bare-deliveries.db"))
	if err != nil {
		return err
	}
	theirs, stop, err := listen(ctx, bare)
	if err != nil {
		return err
	}
	defer stop()
	body := signedBody()
	var rate1, rate2 []float64
	for range deliveryRounds {
		for _, of := range []struct {
			address string
			rates   *[]float64
		}{{ours, &rate1}, {theirs, &rate2}} {
			n, err := deliver(ctx, of.address+"/v1/inbound/github", body)
			if err != nil {
				return err
			}
			*of.rates = append(*of.rates, n)
		}
	}
	r := ratio(median(rate1), median(rate2))
	b.add(row{what: "deliveries of 20 KB stored and answered, 16 clients", value: rate(median(rate1)), baseline: rate(median(rate2)),
		ratio: r, target: "≥ 0.70 of the baseline", met: r >= 0.7})
	return nil
}

// signedDelivery is a body with its signature.
type signedDelivery struct {
	body      []byte
	signature string
}

// signedBody is a body of the kind that GitHub sends: addresses that are alike, and ids and
// hashes that are not. It packs to about a sixth; one text that is repeated would pack to
// nothing, and the product, which packs what it stores, would be compared for storing
// nothing.
func signedBody() signedDelivery {
	text := []byte(`{"action": "edited"`)
	draw := mathrand.New(mathrand.NewPCG(1, 2))
	for i := 0; len(text) < deliveryBytes; i++ {
		text = fmt.Appendf(text, `, "thing_%d": {"id": %d, "node_id": "PR_kw%s", "sha": "%016x%016x", "url": "https://api.github.com/repos/acme/shop/pulls/%d", `+
			`"html_url": "https://github.com/acme/shop/pull/%d", "comments_url": "https://api.github.com/repos/acme/shop/issues/%d/comments", `+
			`"statuses_url": "https://api.github.com/repos/acme/shop/statuses/%d", "type": "User", "site_admin": false}`,
			i, draw.Uint32(), strconv.FormatUint(draw.Uint64(), 36), draw.Uint64(), draw.Uint64(), i, i, i, i)
	}
	text = append(text, '}')
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(text)
	return signedDelivery{text, "sha256=" + hex.EncodeToString(mac.Sum(nil))}
}

var deliveryNumber atomic.Int64

// deliver sends deliveries for a round, and answers how many were taken a second.
func deliver(ctx context.Context, address string, d signedDelivery) (perSecond float64, err error) {
	var sent atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, deliveryClients)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: deliveryClients}}
	defer client.CloseIdleConnections()
	began := time.Now()
	for i := range deliveryClients {
		all.Go(func() {
			for errs[i] == nil && time.Since(began) < deliveryRound {
				errs[i] = d.send(ctx, client, address)
				sent.Add(1)
			}
		})
	}
	all.Wait()
	return float64(sent.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

func (d signedDelivery) send(ctx context.Context, client *http.Client, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(d.body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "pull_request", "X-Hub-Signature-256": d.signature,
		"X-GitHub-Hook-Installation-Target-ID": "7", "X-GitHub-Delivery": fmt.Sprintf("bench-%d", deliveryNumber.Add(1)),
	} {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("a delivery was answered %s", resp.Status)
	}
	return err
}

// bareDeliveries checks the signature of what is posted and commits one row.
func bareDeliveries(path string) (http.Handler, error) {
	pool, err := openSQLite(path, false)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(`CREATE TABLE deliveries (guid TEXT PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL, at INTEGER NOT NULL)`); err != nil {
		return nil, err
	}
	insert, err := pool.Prepare(`INSERT INTO deliveries (guid, kind, body, at) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mac := hmac.New(sha256.New, []byte(hookSecret))
		mac.Write(body)
		signature, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
		if err != nil || !hmac.Equal(signature, mac.Sum(nil)) {
			http.Error(w, "forged", http.StatusUnauthorized)
			return
		}
		guid, kind := r.Header.Get("X-GitHub-Delivery"), r.Header.Get("X-GitHub-Event")
		if _, err := insert.Exec(guid, kind, body, time.Now().UnixMicro()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ack"}`) // the client has disconnected
	}), nil
}
