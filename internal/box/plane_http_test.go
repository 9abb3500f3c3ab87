package box_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

const (
	enrollToken = "dev_enr_once"
	runToken    = "dev_run_long"
	gitToken    = "dev_att_git"
	modelToken  = "dev_att_model"
)

func (p *plane) enroll(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Svc-Enroll-Token") != enrollToken {
		problem(w, http.StatusBadRequest, "enrollment-token-invalid", "The token is spent.")
		return
	}
	p.credentials(w, r)
}

func (p *plane) reissue(w http.ResponseWriter, r *http.Request) {
	p.change(func() { p.reissues++ })
	p.mu.Lock()
	refuse := p.refuse
	p.mu.Unlock()
	if refuse != nil {
		problem(w, refuse.Kind.Status(), refuse.Slug, refuse.Detail)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+runToken {
		problem(w, http.StatusUnauthorized, "unauthenticated", "No.")
		return
	}
	p.credentials(w, r)
}

// hardening takes a report the second time it is sent.
func (p *plane) hardening(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Firewall string `json:"firewall"`
		Ports    *[]any `json:"exposed_ports"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Ports == nil || r.Header.Get("Authorization") != "Bearer "+runToken {
		p.t.Errorf("a report with %q: %+v, %v", r.Header.Get("Authorization"), in, err)
	}
	p.mu.Lock()
	first := len(p.exposure) == 0
	p.mu.Unlock()
	p.change(func() { p.exposure = append(p.exposure, in.Firewall) })
	if first {
		problem(w, http.StatusServiceUnavailable, "unavailable", "Not now.")
		return
	}
	w.Write([]byte(`{"id": "box"}`))
}

func (p *plane) credentials(w http.ResponseWriter, r *http.Request) {
	var in struct {
		PublicKey string `json:"public_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		p.t.Error(err)
	}
	p.moving.RLock()
	defer p.moving.RUnlock()
	var life time.Duration
	p.change(func() { life, p.issued = p.life, p.life })
	token, err := p.bus.Issue(boxID, p.seat, in.PublicKey, max(life, time.Second))
	if err != nil {
		p.t.Error(err)
	}
	ca := p.bus.CA()
	p.mu.Lock()
	if p.ca != nil {
		ca = *p.ca
	}
	p.mu.Unlock()
	now := time.Now()
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(map[string]any{
		"id": boxID, "account_id": "acc-1", "run_token": runToken, "run_token_expires_iso": now.Add(30 * 24 * time.Hour),
		"nats_url": p.bus.URL(), "nats_ca_sha256": ca, "nats_jwt": token, "nats_jwt_expires_iso": now.Add(life),
	})
}

func problem(w http.ResponseWriter, status int, slug, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"type": "https://cp.test/problems/" + slug, "title": slug, "status": status, "detail": detail})
}

// credential refuses, because a box must be able to renew over HTTPS.
func (p *plane) credential(context.Context, struct{}) (out protocol.CredentialReply, err error) {
	p.change(func() { p.renewals++ })
	return out, fault.New(fault.Unavailable, "", "Not now.")
}

// model is the control plane's gateway; it answers with one word.
func (p *plane) model(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+modelToken {
		http.Error(w, `{"error":{"message":"unknown token"}}`, http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",
		"message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`)
}
