package artifact

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/seal"
)

// tokenOf is the token of a link.
func tokenOf(address string) string {
	_, token, _ := strings.Cut(address, Path)
	return token
}

// follow opens a link as somebody without a credential does, and answers what a browser gets.
func (y *yard) follow(address string) (*http.Response, string, error) {
	y.t.Helper()
	to, err := y.open(y.t.Context(), openIn{tokenOf(address)})
	if err != nil {
		return nil, "", err
	}
	if to.Status != 303 || to.Header["Referrer-Policy"] != "no-referrer" || to.Header["Cache-Control"] != "no-store" {
		y.t.Errorf("%+v", to)
	}
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, to.Header["Location"], nil)
	if err != nil {
		y.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		y.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		y.t.Fatal(err)
	}
	return answer, string(text), nil
}

// A link leads anybody to the bytes until it ends, and no longer than there is the artifact.
// One that was changed, of another purpose, or of what was never shared leads nowhere.
func TestLink(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		u, private := y.stored(putIn{}), y.stored(putIn{})
		days := 1
		link, err := y.share(y.ctx, shareIn{ID: u.ID, Days: &days})
		if err != nil || link.Visibility != Public || !strings.HasPrefix(link.URL, y.BaseURL+Path) || y.events("artifact.shared") != 1 {
			t.Fatal(link, err)
		}
		if answer, text, err := y.follow(link.URL); err != nil || answer.StatusCode != 200 || text != "0123456789" {
			t.Error(text, err)
		}
		other := seal.Link{Subject: private.ID, Account: y.account, Expires: y.clock().Add(time.Hour)}
		of := func(purpose string, l seal.Link) string { return y.BaseURL + Path + y.Ring.SignLink(purpose, l) }
		shared := other
		shared.Subject = u.ID
		for name, address := range map[string]string{
			"never shared": of(linkPurpose, other), "another purpose": of("unsubscribe", shared), "nothing": y.BaseURL + Path,
			"changed": y.BaseURL + Path + strings.Replace(tokenOf(link.URL), ".", ".e", 1), "cut": link.URL[:len(link.URL)-1],
		} {
			if _, _, err := y.follow(address); err == nil || fault.From(err).Detail != fault.Missing("artifact").Detail {
				t.Errorf("%s: %v", name, err)
			}
		}
		y.later(25 * time.Hour)
		if _, _, err := y.follow(link.URL); fault.From(err).Slug != "artifact-link-expired" {
			t.Errorf("expired: %v", err)
		}
		long := 90
		again, err := y.share(y.ctx, shareIn{ID: u.ID, Days: &long})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := y.follow(again.URL); err != nil {
			t.Error(err)
		}
		if _, err := y.delete(y.ctx, idIn{u.ID}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := y.follow(again.URL); fault.From(err).Kind != fault.NotFound {
			t.Errorf("deleted: %v", err)
		}
	})
}

// A link ends with its artifact, however long it was asked for.
func TestLinkEndsWithItsArtifact(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		u := y.stored(putIn{})
		y.later(170 * day)
		long := 90
		link, err := y.share(y.ctx, shareIn{ID: u.ID, Days: &long})
		if err != nil || link.URLExpiresAt.After(link.ExpiresAt) || link.SharedUntil.After(link.ExpiresAt) {
			t.Errorf("%+v %v", link, err)
		}
	})
}

// What is shared never acts as a page of this server, whatever it is called and holds.
func TestSharedIsInert(t *testing.T) {
	t.Parallel()
	const polyglot = "GIF89a/*<svg onload=alert(1)><script>alert(1)</script>*/=1;<!--%PDF-1.4"
	onBoth(t, func(t *testing.T, y *yard) {
		for name, kind := range map[string]string{
			"page.html": "text/html", "x.svg": "image/svg+xml", "x.xhtml": "application/xhtml+xml", "x.js": "text/javascript",
			"x.gif": "image/gif", "x.txt": "text/plain", "x.png\"; filename=x.html": "image/png", "x.mht": "multipart/related",
			"x.html": "text/plain; charset=utf-7", "x.pdf": "application/pdf", "x.xml": "text/xml",
		} {
			u, err := y.Service.put(y.ctx, putIn{Name: name, ContentType: kind, Size: int64(len(polyglot))})
			if err != nil {
				t.Fatal(err)
			}
			if status := y.send(u, polyglot); status != 200 {
				t.Fatal(status)
			}
			link, err := y.share(y.ctx, shareIn{ID: u.ID})
			if err != nil {
				t.Fatal(err)
			}
			answer, text, err := y.follow(link.URL)
			if err != nil || text != polyglot {
				t.Fatal(text, err)
			}
			h := answer.Header
			shows := strings.HasPrefix(h.Get("Content-Disposition"), "inline")
			switch got := h.Get("Content-Type"); {
			case h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") !=
				"default-src 'none'; form-action 'none'; frame-ancestors 'none'; sandbox":
				t.Errorf("%s: %v", name, h)
			case shows && got != "text/plain; charset=utf-8" && got != "image/gif" && got != "image/png":
				t.Errorf("%s is shown as %s", name, got)
			case !shows && !strings.HasPrefix(h.Get("Content-Disposition"), "attachment"):
				t.Errorf("%s: %v", name, h)
			}
		}
	})
}
