package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/client"
	"yardmaster/internal/proxies"
)

// Info describes a machine that enrolls.
type Info struct {
	Name    string
	Version string
	Slots   int
	Labels  map[string]string
}

// grant is the server's answer to an enrollment and to a reissue.
type grant struct {
	ID                string    `json:"id"`
	RunToken          string    `json:"run_token"`
	RunTokenExpiresAt time.Time `json:"run_token_expires_iso"`
	NATSURL           string    `json:"nats_url"`
	NATSCA            string    `json:"nats_ca_sha256"`
	NATSJWT           string    `json:"nats_jwt"`
	NATSJWTExpiresAt  time.Time `json:"nats_jwt_expires_iso"`
	AccountID         string    `json:"account_id"`
	ReleaseKeys       []string  `json:"release_keys"`
}

// Enroll redeems a one-time token for an identity. It creates the key; the seed
// never leaves this machine. The caller has to save the identity, because the token
// works once. A refusal wraps *client.Problem.
func Enroll(ctx context.Context, serverURL, token string, info Info) (Identity, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return Identity{}, fmt.Errorf("enroll: make a key: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return Identity{}, fmt.Errorf("enroll: make a key: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return Identity{}, fmt.Errorf("enroll: make a key: %w", err)
	}
	id := Identity{ServerURL: strings.TrimRight(serverURL, "/"), Seed: string(seed)}
	g, now, err := post(ctx, id.ServerURL+"/v1/runners/enroll", "X-Svc-Enroll-Token", token, map[string]any{
		"public_key": public, "name": info.Name, "version": info.Version, "os": runtime.GOOS, "arch": runtime.GOARCH,
		"slots": info.Slots, "labels": info.Labels,
	})
	if err != nil {
		return Identity{}, fmt.Errorf("enroll: %w", err)
	}
	if g.ID == "" || g.RunToken == "" || g.NATSURL == "" || g.NATSJWT == "" {
		return Identity{}, errors.New("enroll: the server's answer is incomplete")
	}
	id.take(g, now)
	id.ReleaseKeys = g.ReleaseKeys
	return id, nil
}

// reissue renews all credentials with the durable token.
func (k *keyring) reissue(ctx context.Context) error {
	id := k.get()
	pair, err := nkeys.FromSeed([]byte(id.Seed))
	if err != nil {
		return fmt.Errorf("reissue: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return fmt.Errorf("reissue: %w", err)
	}
	g, now, err := post(ctx, id.ServerURL+"/v1/runners/creds/reissue", "Authorization", "Bearer "+id.RunToken.Value,
		map[string]any{"public_key": public})
	if err != nil {
		return fmt.Errorf("reissue: %w", err)
	}
	if g.NATSJWT == "" {
		return errors.New("reissue: the server's answer is incomplete")
	}
	return k.update(func(id *Identity) {
		id.take(g, now)
		k.told = true
	})
}

// take adopts what the server granted at now on the server's clock.
func (id *Identity) take(g grant, now time.Time) {
	credential := func(value string, until time.Time) Credential {
		here := time.Now()
		return Credential{Value: value, From: here, Until: here.Add(until.Sub(now))}
	}
	if g.ID != "" {
		id.Box = g.ID
	}
	if g.AccountID != "" {
		id.Account = g.AccountID
	}
	if g.NATSURL != "" {
		id.NATSURL, id.NATSCA = g.NATSURL, g.NATSCA
	}
	if g.RunToken != "" {
		id.RunToken = credential(g.RunToken, g.RunTokenExpiresAt)
	}
	id.NATSJWT = credential(g.NATSJWT, g.NATSJWTExpiresAt)
}

const answerLimit = 1 << 20

// post sends a request to the control plane and returns its answer and the time on
// its clock. A refusal is a *client.Problem, a missing answer a
// *client.Unreachable.
func post(ctx context.Context, url, header, value string, in any) (g grant, now time.Time, err error) {
	now, err = send(ctx, url, header, value, in, &g)
	return g, now, err
}

// send posts in as JSON and decodes the answer into out, unless out is nil. Its
// errors are those of post.
func send(ctx context.Context, url, header, value string, in, out any) (now time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return now, err
	}
	proxies.SpareServer(ctx, url)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return now, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header, value)
	// A redirect would send the credential to another host.
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := direct.Do(req)
	if err != nil {
		return now, &client.Unreachable{URL: req.URL.Scheme + "://" + req.URL.Host, Err: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return now, err
	}
	if resp.StatusCode/100 != 2 {
		p := &client.Problem{Status: resp.StatusCode}
		if json.Unmarshal(data, p) != nil || p.Type == "" {
			return now, fmt.Errorf("%s answered %s", url, resp.Status)
		}
		return now, p
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			return now, fmt.Errorf("read the answer of %s: %w", url, err)
		}
	}
	if now, err = http.ParseTime(resp.Header.Get("Date")); err != nil {
		now = time.Now()
	}
	return now, nil
}

// unknown tells whether err says that the control plane does not know this box's
// token.
func unknown(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status == http.StatusUnauthorized
}

// revoked tells whether err says that the control plane has revoked this box.
func revoked(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Slug() == "box-revoked"
}
