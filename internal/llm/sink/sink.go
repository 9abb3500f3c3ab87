// Package sink writes down copies of model calls without the secrets that are known or
// recognised, and sends them to a collector over HTTPS, to a receiver of OTLP, or to a bucket
// of S3.
//
//   - sink.go: the copy, and where it goes
//   - send.go: how a batch is sent
//   - form.go, otlp.go: what is sent
//   - asked.go: the conversation in a request
//   - clean.go: how secrets are taken out
package sink

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/llm"
)

// Kind is how copies are sent.
type Kind string

// Kinds of targets.
const (
	HTTPS Kind = "https"
	OTLP  Kind = "otlp"
	S3    Kind = "s3"
)

// Values lists all kinds.
func (Kind) Values() []string { return []string{string(HTTPS), string(OTLP), string(S3)} }

// Made is a call that was made, as it was seen.
type Made struct {
	ID       string
	At       time.Time // when it began
	Account  string
	Session  string
	API      llm.API
	Provider llm.Provider
	Model    string
	Token    string // of the caller, a secret
	Body     []byte // the beginning of the request
	Asked    int    // bytes of the request
	Status   int    // of the answer; 0: there was none
	Type     string // media type of the answer
	Answer   []byte // the beginning of the answer
	Cut      bool   // the answer is longer
	Usage    llm.Usage
}

// Target is where calls are sent, and with which credentials.
type Target struct {
	Kind    Kind              `json:"kind"`
	URL     string            `json:"url"` // of S3: the endpoint, the bucket and a prefix of keys
	Headers map[string]string `json:"headers,omitempty"`
	Region  string            `json:"region,omitempty"`
	Access  string            `json:"access,omitempty"`
	Secret  string            `json:"secret,omitempty"`
}

// Secrets are the credentials of the target.
func (to Target) Secrets() (all []string) {
	for _, value := range to.Headers {
		all = append(all, value)
		if _, token, ok := strings.Cut(value, " "); ok { // behind Bearer, say
			all = append(all, token)
		}
	}
	return append(all, to.Secret)
}

var (
	headerName = lazy.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	headerText = lazy.New(`^[\t\x20-\x7e]*$`)
	bucketPath = lazy.New(`^/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9._-]+)*/?$`)
	wordText   = lazy.New(`^[\x21-\x7e]+$`)
)

// ours tells whether a header is the sender's to set.
func ours(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Content-Length", "Content-Type", "Content-Encoding", "Host", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect":
		return true
	}
	return false
}

// Check refuses fields that fit neither each other nor the kind, with a fault that names the
// field as billing.log_sink_set does, and completes those that were left out. Whether the
// address may be connected to is for the caller to ask.
func (to *Target) Check() error {
	to.URL = strings.TrimSpace(to.URL)
	u, err := url.Parse(to.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return fault.Field("url", "must be an https address without user and fragment")
	}
	for name, value := range to.Headers {
		switch {
		case !headerName.MatchString(name) || ours(name):
			return fault.Field("headers."+name, "is no name of a header that can be set")
		case !headerText.MatchString(value):
			return fault.Field("headers."+name, "must be printable ASCII")
		}
	}
	if to.Kind == S3 {
		return to.checkBucket(u)
	}
	if to.Region != "" || to.Access != "" || to.Secret != "" {
		return fault.Field("kind", "region, access_key_id and secret_access_key are for s3 only")
	}
	if to.Kind == OTLP && strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
		to.URL = u.String()
	}
	return nil
}

func (to *Target) checkBucket(u *url.URL) error {
	switch {
	case len(to.Headers) > 0:
		return fault.Field("headers", "are not for s3")
	case u.RawQuery != "" || !bucketPath.MatchString(u.Path):
		return fault.Field("url", "must end with the bucket and, if wanted, a prefix of keys")
	case !wordText.MatchString(to.Access):
		return fault.Field("access_key_id", "is required for s3, in printable ASCII without spaces")
	case !wordText.MatchString(to.Secret):
		return fault.Field("secret_access_key", "is required for s3, in printable ASCII without spaces")
	case to.Region != "" && !wordText.MatchString(to.Region):
		return fault.Field("region", "must be printable ASCII without spaces")
	case to.Region == "":
		to.Region = "us-east-1"
	}
	return nil
}
