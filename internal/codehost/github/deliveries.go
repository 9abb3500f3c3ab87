package github

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/codehost"
	"yardmaster/internal/lazy"
)

var (
	guidPattern = lazy.New(`^[0-9a-zA-Z-]{1,64}$`)
	kindPattern = lazy.New(`^[a-z0-9_]{1,64}$`)
)

// Accept implements codehost.Feed. The signature covers the body alone, not the headers
// that name the App, the event and the delivery. See the page "Validating webhook
// deliveries".
func (h *Host) Accept(header func(name string) string, body []byte) (codehost.Delivery, error) {
	if id := header("X-GitHub-Hook-Installation-Target-ID"); id != number(h.cfg.AppID) {
		return codehost.Delivery{}, fmt.Errorf("%w: of the App %.40q", codehost.ErrForeign, id)
	}
	if host := header("X-GitHub-Enterprise-Host"); !h.sentBy(host) {
		return codehost.Delivery{}, fmt.Errorf("%w: of the Enterprise Server %.100q", codehost.ErrForeign, host)
	}
	signature, err := hex.DecodeString(strings.TrimPrefix(header("X-Hub-Signature-256"), "sha256="))
	if err != nil || !h.signed(body, signature) {
		return codehost.Delivery{}, codehost.ErrForged
	}
	d := codehost.Delivery{Host: h.cfg.Name, GUID: header("X-GitHub-Delivery"), Kind: header("X-GitHub-Event"), Body: body}
	if !guidPattern.MatchString(d.GUID) || !kindPattern.MatchString(d.Kind) {
		return codehost.Delivery{}, fmt.Errorf("%w: its headers name no delivery", codehost.ErrForged)
	}
	if kind, _, _ := strings.Cut(header("Content-Type"), ";"); kind == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return codehost.Delivery{}, fmt.Errorf("%w: %w", codehost.ErrForged, err)
		}
		d.Body = []byte(form.Get("payload"))
	}
	return d, nil
}

// sentBy tells whether this is the Enterprise Server of a name. github.com and
// Enterprise Cloud send none.
func (h *Host) sentBy(host string) bool {
	if !strings.HasSuffix(h.cfg.Addresses.API, "/api/v3") {
		return host == ""
	}
	return strings.EqualFold(host, h.web.Host) || strings.EqualFold(host, h.web.Hostname())
}

func (h *Host) signed(body, signature []byte) bool {
	ok := false
	for _, secret := range h.cfg.Secrets {
		if secret == "" {
			continue // everybody could sign
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		ok = hmac.Equal(mac.Sum(nil), signature) || ok
	}
	return ok
}

// payload is what deliveries have in common, and what each kind has of its own. See the
// page "Webhook events and payloads".
type payload struct {
	Action       string            `json:"action"`
	Repository   *wireRepo         `json:"repository"`
	Sender       *wireUser         `json:"sender"`
	Installation *wireInstallation `json:"installation"`

	Repositories []wireRepo `json:"repositories"`
	Added        []wireRepo `json:"repositories_added"`
	Removed      []wireRepo `json:"repositories_removed"`
	Selection    string     `json:"repository_selection"`
	Account      *wireUser  `json:"account"`     // of installation_target
	TargetType   string     `json:"target_type"` // of installation_target
	Changes      struct {
		Repository struct {
			Name struct {
				From string `json:"from"`
			} `json:"name"`
		} `json:"repository"`
		Owner struct {
			From struct {
				User         *wireUser `json:"user"`
				Organization *wireUser `json:"organization"`
			} `json:"from"`
		} `json:"owner"`
	} `json:"changes"`

	Ref    string `json:"ref"`
	Before string `json:"before"`
	After  string `json:"after"`

	PullRequest *wirePull    `json:"pull_request"`
	Review      *wireReview  `json:"review"`
	Comment     *wireComment `json:"comment"`
	Thread      *struct {
		NodeID   string        `json:"node_id"`
		Comments []wireComment `json:"comments"`
	} `json:"thread"`
	UpdatedAt stamp `json:"updated_at"` // of pull_request_review_thread, status

	Issue *wireIssue `json:"issue"`
	Label *struct {
		Name string `json:"name"`
	} `json:"label"`

	CheckRun   *wireCheck `json:"check_run"`
	CheckSuite *struct {
		HeadSHA string   `json:"head_sha"`
		App     *wireApp `json:"app"`
	} `json:"check_suite"`
	WorkflowRun *struct {
		HeadSHA string `json:"head_sha"`
	} `json:"workflow_run"`
	WorkflowJob *struct {
		HeadSHA string `json:"head_sha"`
	} `json:"workflow_job"`
	SHA        string `json:"sha"` // of status
	MergeGroup *struct {
		HeadRef string `json:"head_ref"`
		HeadSHA string `json:"head_sha"`
		BaseRef string `json:"base_ref"`
	} `json:"merge_group"`
	Reason string `json:"reason"`
}

var errPayload = errors.New("the delivery lacks what its kind has")

// Events implements codehost.Feed.
func (h *Host) Events(d codehost.Delivery) ([]codehost.Event, error) {
	translate := translations[d.Kind]
	if translate == nil {
		return nil, nil
	}
	var p payload
	if err := json.Unmarshal(d.Body, &p, lenient); err != nil {
		return nil, fmt.Errorf("read the delivery %s of %s: %w", d.GUID, d.Kind, err)
	}
	about := codehost.Happening{Action: cmp.Or(actions[p.Action], codehost.ActionOther), By: h.user(p.Sender)}
	if p.Repository != nil {
		about.Repo = h.repo(*p.Repository)
	} else if !strings.HasPrefix(d.Kind, "installation") {
		return nil, nil // of an organisation or its rules
	}
	events, err := translate(h, p, about)
	if err != nil {
		return nil, fmt.Errorf("delivery %s of %s: %w", d.GUID, d.Kind, err)
	}
	return events, nil
}
