package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"yardmaster/internal/client"
	"yardmaster/internal/mail"
)

// An operator reads what is not sent, of all pages, and what a mail server has written
// passes no control character to the terminal.
func TestOperateMails(t *testing.T) {
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+r.URL.EscapedPath())
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{}`)
		case r.URL.Path == "/v1/admin/mail-refusals":
			fmt.Fprint(w, `{"data": [{"address": "gone@example.com", "reason": "no\u001b[31m", "refused_at": "2026-01-02T03:04:05Z"}]}`)
		case r.URL.Query().Get("cursor") == "":
			fmt.Fprint(w, `{"data": [{"id": "1", "to": "a@example.com", "state": "due", "tries": 3, "age_seconds": 3600}],
				"next_cursor": "a b"}`)
		default:
			fmt.Fprint(w, `{"data": [{"id": "2", "state": "failed", "last_error": "550\u202e", "created_at": "2026-01-02T03:04:05Z"}]}`)
		}
	}))
	defer server.Close()
	out := stdout(t, func() {
		if err := operateMails(t.Context(), &client.Client{URL: server.URL}, "1", "gone@example.com"); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{"a@example.com", "1h0m0s", "550", "gone@example.com"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("printed %q", out)
	}
	if want := "POST /v1/admin/mail-refusals/gone@example.com/clear"; len(calls) != 5 || calls[0] != want {
		t.Errorf("called %q", calls)
	}
}

// stdout answers what do prints.
func stdout(t *testing.T, do func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = before }()
	do()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMailsAreInert checks that a name in a letter passes no control character to
// the reader's terminal.
func TestMailsAreInert(t *testing.T) {
	const nasty = "a\x1b]0;owned\x07\u202eb\u009b2J"
	l := mail.Letter{Message: mail.Message{To: nasty, Subject: nasty, Text: nasty + "\nhttps://yard.example/x\n"}, From: nasty}
	var b strings.Builder
	if err := showMail(&b, l); err != nil {
		t.Fatal(err)
	}
	if err := listMails(&b, []mail.Letter{l}); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(b.String(), "\n", "")
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) ||
		!strings.Contains(text, "https://yard.example/x") {
		t.Errorf("printed %q", text)
	}
}

// Mails are read in the folder of a server; where there is none, that is said.
func TestMailsOfNoServer(t *testing.T) {
	t.Parallel()
	err := readMails(filepath.Join(t.TempDir(), "none"), nil)
	if err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("it says %v", err)
	}
}

// The newest mail to an address is shown by the address alone.
func TestNewestMail(t *testing.T) {
	t.Parallel()
	letters := []mail.Letter{{Message: mail.Message{To: "a@example.com", Text: "one"}},
		{Message: mail.Message{To: "A@example.com", Text: "two"}}, {Message: mail.Message{To: "b@example.com", Text: "three"}}}
	var b strings.Builder
	if err := newestMail(&b, letters, "a@example.com"); err != nil || !strings.Contains(b.String(), "two") {
		t.Errorf("shown: %q, %v", b.String(), err)
	}
	if err := newestMail(&b, letters, "c@example.com"); err == nil {
		t.Error("a mail to nobody is shown")
	}
}
