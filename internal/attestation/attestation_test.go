package attestation

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func example() Statement {
	return Statement{
		Type: StatementType, PredicateType: PredicateType, Predicate: Merge{AccountID: "acme"},
		Subject: []Subject{{Name: "acme/web", Digest: map[string]string{"gitCommit": "0123456789012345678901234567890123456789"}}},
	}
}

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// The encoding is that of the example in DSSE's protocol.md.
func TestEncoding(t *testing.T) {
	t.Parallel()
	if got := string(pae("http://example.com/HelloWorld", []byte("hello world"))); got != "DSSEv1 29 http://example.com/HelloWorld 11 hello world" {
		t.Error(got)
	}
}

// Another implementation, written from the descriptions of DSSE and of in-toto, finds in an
// envelope what was signed.
func TestOthersVerify(t *testing.T) {
	t.Parallel()
	envelope, err := Sign(key(1), example())
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(envelope, &e); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(e["payload"].(string))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.StdEncoding.DecodeString(e["signatures"].([]any)[0].(map[string]any)["sig"].(string))
	if err != nil {
		t.Fatal(err)
	}
	over := fmt.Sprintf("DSSEv1 %d %s %d %s", len("application/vnd.in-toto+json"), "application/vnd.in-toto+json", len(payload), payload)
	if !ed25519.Verify(public(key(1)), []byte(over), sig) {
		t.Error("the signature does not cover the encoding")
	}
	var s map[string]any
	if err := json.Unmarshal(payload, &s); err != nil || s["_type"] != "https://in-toto.io/Statement/v1" ||
		s["predicateType"] != "urn:yardmaster:merge:v1" ||
		s["subject"].([]any)[0].(map[string]any)["digest"].(map[string]any)["gitCommit"] != "0123456789012345678901234567890123456789" {
		t.Error(s, err)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	envelope, err := Sign(key(1), example())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Verify(envelope, public(key(2)), public(key(1))); err != nil || s.Predicate.AccountID != "acme" {
		t.Error(s, err)
	}
	for _, keys := range [][]ed25519.PublicKey{nil, {public(key(2))}} {
		if _, err := Verify(envelope, keys...); !errors.Is(err, ErrKey) {
			t.Error(err)
		}
	}
	hint := bytes.Index(envelope, []byte(`"keyid"`)) // which nothing vouches for
	for i := range envelope {                        // whatever else is changed
		for _, to := range []byte{'A', 'B', '0', '}', 0} {
			changed := bytes.Clone(envelope)
			if changed[i] = to; bytes.Equal(changed, envelope) {
				continue
			}
			if _, err := Verify(changed, public(key(1))); err == nil && (i < hint || i >= hint+len(`"keyid":"12345678"`)) {
				t.Fatalf("verified with %q at %d: %s", to, i, changed)
			}
		}
	}
}

// What is signed by the key, and is something else, is refused as well.
func TestOtherStatements(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Statement){
		"another version":      func(s *Statement) { s.Type = "https://in-toto.io/Statement/v0.1" },
		"another predicate":    func(s *Statement) { s.PredicateType = "https://slsa.dev/provenance/v1" },
		"no subject":           func(s *Statement) { s.Subject = nil },
		"a subject, no commit": func(s *Statement) { s.Subject[0].Digest = map[string]string{"sha256": "0"} },
	} {
		s := example()
		change(&s)
		envelope, err := Sign(key(1), s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(envelope, public(key(1))); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "{}", "[]", "null", `{"payloadType":"text/plain","payload":"","signatures":[]}`, `{} {}`} {
		if _, err := Verify([]byte(text), public(key(1))); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
