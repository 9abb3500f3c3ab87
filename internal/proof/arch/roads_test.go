package arch

import (
	"strings"
	"testing"
)

// roads are the files of the server that connect without the guard of package dial, and why: what
// they connect to is named by a setting, or lies on this machine. docs/outside.md promises that
// nothing else connects.
var roads = map[string]string{
	"internal/blob/s3.go":                     "the setting blob",
	"internal/app/codehosts.go":               "the GitHub of the settings; others by the guard",
	"internal/app/examine.go":                 "what the settings name, and the server itself",
	"internal/app/drill.go":                   "the copy that it has just started",
	"internal/codehost/github/github.go":      "by the transport that it is given",
	"internal/codehost/homes/homes.go":        "other nodes",
	"internal/codehost/relay/relay.go":        "by the transport that it is given",
	"internal/event/notary/deliver.go":        "audit-heads-webhook",
	"internal/idp/github.go":                  "the GitHub of the settings",
	"internal/linear/linear.go":               "by the transport that it is given",
	"internal/observe/telemetry/collector.go": "otlp-endpoint",
	"internal/stripe/stripe.go":               "stripe-url",
	"internal/domain/join/join.go":            "it names the dialer of the guard",
	"internal/llm/transport.go":               "by the control that it is given, of the guard",
}

// TestServerConnectsByItsGuard holds that a file of the server which makes connections does so by the
// guard, or is in the list with its reason.
func TestServerConnectsByItsGuard(t *testing.T) {
	users := map[string][]string{}
	for _, f := range files(t) {
		elsewhere := false
		for _, room := range []string{"proof/", "box", "cli", "client", "demo", "child", "terminal", "db/dbtest", "dial"} {
			elsewhere = elsewhere || f.pkg() == room || strings.HasPrefix(f.pkg(), strings.TrimSuffix(room, "/")+"/")
		}
		if f.test || elsewhere || strings.HasSuffix(f.pkg(), "test") || f.uses("yardmaster/internal/dial", "Guard") {
			continue
		}
		if f.uses("net/http", "DefaultClient", "DefaultTransport", "Client", "Transport", "Get", "Post", "PostForm", "Head") {
			users[f.path] = append(users[f.path], "a client of HTTP")
		}
		if f.uses("net", "Dial", "DialTimeout", "Dialer", "DialUDP", "DialTCP") ||
			f.uses("crypto/tls", "Dial", "DialWithDialer", "Dialer") {
			users[f.path] = append(users[f.path], "a dialer")
		}
	}
	exceptions(t, "connects without the guard", users, roads)
}
