package cli

import (
	"crypto/ed25519"
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
