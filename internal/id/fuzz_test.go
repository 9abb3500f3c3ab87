package id

import (
	"strings"
	"testing"
)

// Checked accepts exactly the texts that prefix, alphabet and checksum define.
func FuzzChecked(f *testing.F) {
	for _, prefix := range []string{PAT, RunToken, Enrollment, Attempt, Setup, Invite} {
		f.Add(prefix, Secret(prefix))
		f.Add(prefix, prefix+strings.Repeat("0", 49))
	}
	f.Add(PAT, "")
	f.Add("", strings.Repeat("z", 49))
	f.Add(PAT, PAT+strings.Repeat("\xff", 49))
	f.Fuzz(func(t *testing.T, prefix, s string) {
		if !Checked(prefix, s) {
			return
		}
		body := s[:len(s)-6]
		if !strings.HasPrefix(s, prefix) || len(s) != len(prefix)+49 || s != body+checksum(body) {
			t.Fatalf("%q passes for %q", s, prefix)
		}
		for i := range s {
			for _, c := range []byte("0Az!") {
				if other := s[:i] + string(c) + s[i+1:]; s[i] != c && Checked(prefix, other) {
					t.Fatalf("%q passes, and so does %q", s, other)
				}
			}
		}
	})
}
