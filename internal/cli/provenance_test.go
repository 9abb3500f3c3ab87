package cli

import (
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/attestation"
)

// A note of a commit has a line for each pull request that it merged; all of them hold, or none.
func TestVerified(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("o", ed25519.SeedSize)))
	sign := func(key ed25519.PrivateKey, number int64) string {
		s := attestation.Statement{
			Type: attestation.StatementType, PredicateType: attestation.PredicateType,
			Subject: []attestation.Subject{{Name: "acme/web", Digest: map[string]string{"gitCommit": "c1"}}, {Name: "pull request"}},
		}
		s.Predicate.PullRequest.Number = number
		b, err := attestation.Sign(key, s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	keys := []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
	all, err := verified(sign(key, 3)+sign(key, 4), "c1", keys)
	if err != nil || len(all) != 2 || all[1].Predicate.PullRequest.Number != 4 {
		t.Errorf("%+v, %v", all, err)
	}
	for name, note := range map[string]string{
		"another key": sign(key, 3) + sign(other, 4), "an empty line": sign(key, 3) + "\n", "nothing": "",
		"too many": strings.Repeat(sign(key, 3), mostStatements+1),
	} {
		if all, err := verified(note, "", keys); err == nil || len(all) > 0 {
			t.Errorf("%s: %d hold", name, len(all))
		}
	}
	if _, err := verified(sign(key, 3), "c2", keys); err == nil {
		t.Error("of another commit")
	}
}

// People and boxes have their names where a statement is shown; where it is checked without a
// server, a person is known as one by the kind before the id.
func TestStatementsNamePeople(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	s := attestation.Statement{
		Type: attestation.StatementType, PredicateType: attestation.PredicateType,
		Subject: []attestation.Subject{{Name: "acme/web", Digest: map[string]string{"gitCommit": "c1"}}, {Name: "pull request"}},
	}
	s.Predicate.Asked = &attestation.Asked{TaskID: otherID, RequestedBy: new(someID), CreatedBy: "user:" + someID}
	s.Predicate.MergedBy = new("user:" + someID)
	s.Predicate.Runs = []attestation.Run{{Kind: "work", BoxID: otherID}}
	envelope, err := attestation.Sign(key, s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(envelope))
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t, map[string]string{
		"GET /v1/prs/" + someID + "/provenance": `{"state": "signed", "merge_sha": "c1", "envelope": ` + string(text) + `,
			"public_key": "` + attestation.PublicKey(key) + `",
			"artifact": {"state": "stored"}, "note": {"state": "stored"}}`,
		"GET /v1/actors": `{"data": [{"actor": "box:` + otherID + `", "name": "builder"},
			{"actor": "user:` + someID + `", "name": "ada"}]}`,
	})
	p := f.person(t, "NO_COLOR=1")
	shown, code := p.terminal([]string{"provenance", "show", someID})
	for _, want := range []string{"decided    ada,", "asked      ada, task " + otherID, " on builder,"} {
		if code != 0 || !strings.Contains(shown, want) {
			t.Errorf("exit code %d, and it does not say %q:\n%s", code, want, shown)
		}
	}
	file := filepath.Join(t.TempDir(), "merge.dsse.json")
	if err := os.WriteFile(file, envelope, 0o600); err != nil {
		t.Fatal(err)
	}
	shown, code = p.terminal([]string{"provenance", "verify", file, "--key", attestation.PublicKey(key)})
	if want := "asked      user:" + someID; code != 0 || !strings.Contains(shown, want) {
		t.Errorf("exit code %d, and it does not say %q:\n%s", code, want, shown)
	}
}
