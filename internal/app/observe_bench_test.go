package app

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// bench runs a control plane with some tokens, and answers one of them.
func bench(b *testing.B, log *slog.Logger, flags ...string) (*App, string) {
	b.Helper()
	setup := id.Secret(id.Setup)
	args := []string{"--data", b.TempDir(), "--listen", "127.0.0.1:0", "--database", dbtest.DSN(b, db.SQLite),
		"--setup-token", setup, "--rate-limits", "off"}
	cfg, err := config.Load("bench", append(args, flags...), func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan *App, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, cfg, Options{Version: "test", Logger: log, Ready: func(a *App) { ready <- a }})
	}()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	var a *App
	select {
	case a = <-ready:
	case err := <-ended:
		ended <- nil
		b.Fatal(err)
	}
	resp, err := http.Post(a.URL()+"/setup/"+setup, "application/json",
		strings.NewReader(`{"login": "ada", "email": "ada@example.com", "password": "`+password+`", "account": "acme"}`))
	if err != nil || resp.StatusCode != http.StatusCreated {
		b.Fatal(resp, err)
	}
	defer resp.Body.Close()
	var made struct{ User, Account struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil {
		b.Fatal(err)
	}
	var bearer string
	err = a.db.Write(db.WithAccount(context.Background(), made.Account.ID), func(tx *db.Tx) error {
		for range 50 {
			m, err := token.Mint(tx, policy.PAT, made.User.ID, nil, policy.Owner.Ceiling(), nil)
			if err != nil {
				return err
			}
			bearer = m.Token
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return a, bearer
}

// BenchmarkObserved tells what the record of a request and the metrics add to a
// read, in per cent of the read without them. Two control planes of this process
// are asked in turns over HTTP, one that records and measures and one that does
// not, and their lower quartiles are compared.
func BenchmarkObserved(b *testing.B) {
	seen, bearer := bench(b, slog.New(slog.NewJSONHandler(io.Discard, nil)), "--metrics-listen", "127.0.0.1:0")
	unseen, other := bench(b, nil)
	with, without := httptest.NewServer(seen.handler()), httptest.NewServer(unseen.served())
	defer with.Close()
	defer without.Close()
	ask := func(b *testing.B, url, bearer string) time.Duration {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
		began := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.StatusCode, err)
		}
		return time.Since(began)
	}
	quartile := func(all []time.Duration) float64 { // the lower one, which other work on the machine moves least
		slices.Sort(all)
		return float64(all[len(all)/4]) / float64(time.Microsecond)
	}
	for name, path := range map[string]string{"page of tokens": "/v1/tokens?per_page=25", "smallest": "/v1/me"} {
		b.Run(name, func(b *testing.B) {
			var took [2][]time.Duration
			for b.Loop() {
				took[0], took[1] = append(took[0], ask(b, with.URL+path, bearer)), append(took[1], ask(b, without.URL+path, other))
			}
			recorded, bare := quartile(took[0]), quartile(took[1])
			b.ReportMetric(recorded, "µs-with")
			b.ReportMetric(bare, "µs-without")
			b.ReportMetric(100*(recorded-bare)/bare, "%")
		})
	}
}
