package oauth

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/seal"
)

func TestRedirects(t *testing.T) {
	t.Parallel()
	for uri, good := range map[string]bool{
		"https://editor.example/cb":             true,
		"https://editor.example:8443/cb?x=1":    true,
		"https://editor.example":                true,
		"http://127.0.0.1/cb":                   true,
		"http://127.0.0.1:7777/cb":              true,
		"http://[::1]:7777/cb":                  true,
		"http://localhost:7777/cb":              true,
		"com.example.editor:/cb":                true,
		"com.example.editor://auth/cb":          true,
		"http://editor.example/cb":              false, // anybody on the network path could read the code
		"http://127.0.0.1.evil.example/cb":      false,
		"http://localhost.evil.example/cb":      false,
		"http://0.0.0.0/cb":                     false,
		"http://127.0.0.2/cb":                   false,
		"https://user@editor.example/cb":        false,
		"https://editor.example@evil.example/":  false,
		"https://editor.example/cb#top":         false,
		"https://editor.example/cb#":            false,
		"https://":                              false,
		"https:///cb":                           false,
		"https://a;b/cb":                        false, // would end a directive of the policy
		"https://a'b/cb":                        false,
		"https://a b/cb":                        false,
		"https://editor.example\\@evil.example": false,
		"https://editor.example/c\tb":           false,
		"https://bücher.example/cb":             false,
		"javascript:alert(1)":                   false,
		"data:text/html,hello":                  false,
		"file:///etc/passwd":                    false,
		"ftp://editor.example/":                 false,
		"editor:/cb":                            false, // not a domain name
		"com.example.editor:opaque":             false,
		"/cb":                                   false,
		"//editor.example/cb":                   false,
		"":                                      false,
		"https://editor.example/" + strings.Repeat("x", maxRedirect): false,
	} {
		if why := checkRedirect(uri); (why == "") != good {
			t.Errorf("%q: %q", uri, why)
		}
	}
}

func TestRegistered(t *testing.T) {
	t.Parallel()
	r := registration{Redirects: []string{
		"http://127.0.0.1:1/cb?x=1",
		"http://localhost/cb",
		"https://editor.example/cb",
		"com.example.editor:/cb",
	}}
	for uri, want := range map[string]bool{
		"https://editor.example/cb":      true,
		"com.example.editor:/cb":         true,
		"http://127.0.0.1:1/cb?x=1":      true,
		"http://127.0.0.1:7777/cb?x=1":   true, // any port of this machine
		"http://127.0.0.1/cb?x=1":        true,
		"http://localhost:7777/cb":       true,
		"http://127.0.0.1:7777/cb":       false,
		"http://127.0.0.1:7777/cb?x=2":   false,
		"http://127.0.0.1:7777/cb/?x=1":  false,
		"http://[::1]:1/cb?x=1":          false,
		"https://127.0.0.1:1/cb?x=1":     false,
		"https://editor.example:444/cb":  false,
		"https://editor.example/cb/":     false,
		"https://editor.example/cb/../x": false,
		"https://editor.example/cb?":     false,
		"https://EDITOR.example/cb":      false,
		"https://editor.example.evil/cb": false,
		"com.example.editor:/cb2":        false,
		"":                               false,
	} {
		if got := r.registered(uri); got != want {
			t.Errorf("%q: %v", uri, got)
		}
	}
}

// FuzzRedirect holds that every allowed redirect address is one source in the policy
// of the consent screen, and one header line.
func FuzzRedirect(f *testing.F) {
	for _, uri := range []string{
		"https://editor.example/cb",
		"http://127.0.0.1:1/cb?x=1",
		"http://[::1]:7/",
		"com.example.editor:/cb",
		"https://a;b/",
		"https://a%20b/",
		"http://localhost:/x",
	} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		r := registration{Redirects: []string{uri}}
		if checkRedirect(uri) != "" {
			if r.registered(uri) {
				t.Errorf("%q is refused at registration and taken afterwards", uri)
			}
			return
		}
		if !r.registered(uri) {
			t.Errorf("%q is registered and not taken", uri)
		}
		if s := source(uri); s == "" || strings.ContainsAny(s, " ;,'\"*\r\n") {
			t.Errorf("%q is %q in a policy", uri, s)
		}
		at := answerAt(uri, map[string][]string{"code": {"c&\n"}})
		if strings.ContainsAny(at, " \r\n") || !strings.HasPrefix(at, uri) || !strings.HasSuffix(at, "code=c%26%0A") {
			t.Errorf("%q is answered at %q", uri, at)
		}
	})
}

// TestClientsAreSealed holds that a registration is not accepted by another server,
// and cannot be forged.
func TestClientsAreSealed(t *testing.T) {
	t.Parallel()
	ring, other := &seal.Keyring{}, &seal.Keyring{}
	for i, k := range []**seal.Keyring{&ring, &other} {
		made, err := seal.Parse(strings.Repeat([]string{"0a", "0b"}[i], 32))
		if err != nil {
			t.Fatal(err)
		}
		*k = made
	}
	made, err := service(&db.DB{}, ring).register(t.Context(), registerIn{Name: " Editor ", Redirects: []string{"http://localhost/cb"}})
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := service(&db.DB{}, ring).client(made.ClientID); !ok || r.Name != "Editor" || !r.registered("http://localhost:9/cb") {
		t.Errorf("the client is %+v, %v", r, ok)
	}
	if _, ok := service(&db.DB{}, other).client(made.ClientID); ok {
		t.Error("another server takes the client")
	}
	for _, id := range []string{
		"",
		"v1.",
		made.ClientID[:len(made.ClientID)-2],
		ring.Seal(sealConsent, []byte(`{"r":["http://localhost/cb"]}`)),
	} {
		if _, ok := service(&db.DB{}, ring).client(id); ok {
			t.Errorf("%q is a client", id)
		}
	}
}

func TestRegistrationIsRefused(t *testing.T) {
	t.Parallel()
	good := []string{"https://editor.example/cb"}
	for name, c := range map[string]struct {
		in   registerIn
		code string
	}{
		"no address":            {registerIn{}, "invalid_redirect_uri"},
		"too many":              {registerIn{Redirects: make([]string, maxRedirects+1)}, "invalid_redirect_uri"},
		"one bad address":       {registerIn{Redirects: append(good, "http://editor.example/cb")}, "invalid_redirect_uri"},
		"another grant":         {registerIn{Redirects: good, GrantTypes: []string{"client_credentials"}}, "invalid_client_metadata"},
		"no grant":              {registerIn{Redirects: good, GrantTypes: []string{}}, "invalid_client_metadata"},
		"another response":      {registerIn{Redirects: good, ResponseTypes: []string{"token"}}, "invalid_client_metadata"},
		"a long name":           {registerIn{Redirects: good, Name: strings.Repeat("é", maxName+1)}, "invalid_client_metadata"},
		"a name that turns":     {registerIn{Redirects: good, Name: "rotidE\u202e"}, "invalid_client_metadata"},
		"a name of two lines":   {registerIn{Redirects: good, Name: "a\nb"}, "invalid_client_metadata"},
		"a name with a zero in": {registerIn{Redirects: good, Name: "a\x00b"}, "invalid_client_metadata"},
	} {
		_, err := service(&db.DB{}, seal.New()).register(t.Context(), c.in)
		if err == nil || !strings.HasPrefix(err.Error(), c.code+": ") {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}
