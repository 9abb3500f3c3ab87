package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// serves asks for the refs of a repository, as git does before it fetches or pushes.
func (l *lab) serves(name, token, service string) int {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), "GET", l.URL()+"/git/"+name+".git/info/refs?service="+service, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	req.SetBasicAuth("x", token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestRunReadsNoOtherRepository walks the doors of git and of Git LFS with the token of a run, for
// each kind of repository: its own, one that it has as a submodule, one of its account that
// nobody has named, one of another account, named or not. A pointer or a gitlink, and whatever
// .gitmodules says, gives it nothing of another account, nor of a repository that is not named.
func TestRunReadsNoOtherRepository(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			l := start(t, e).lab()
			l.send("POST", "/v1/billing/keys", l.owner, `{"provider": "scripted"}`).want(http.StatusCreated)
			rival := l.tenant("rival")
			bob := l.person("bob", rival, policy.Owner)
			theirs := l.mint(rival, &bob, policy.Owner.Ceiling(), nil)
			objects := map[string]gitlfs.Pointer{}
			for i, name := range []string{"acme/lib", "acme/secret", "rival/named", "rival/other"} {
				text := random(uint64(20+i), 3000+i)
				objects[name], _ = objectOf(text)
				token := l.owner
				if strings.HasPrefix(name, "rival/") {
					token = theirs
				}
				l.git(l.work(name, map[string][]byte{"a.bin": text}), token, "push", "-q", "origin", "main")
			}
			modules := ""
			for path, at := range map[string]string{"lib": "../lib.git", "near": "../../rival/named.git",
				"far": l.URL() + "/git/rival/named.git", "twice": l.URL() + "/git/acme/../rival/other.git",
				"cased": "../../Rival/other.git", "coded": l.URL() + "/git/acme/%2e%2e/rival/other"} {
				modules += "[submodule \"" + path + "\"]\n\tpath = " + path + "\n\turl = " + at + "\n"
			}
			l.land("acme/app", "main", map[string]string{"README.md": "app\n", ".gitmodules": modules}, nil)

			box := l.station(l.owner)
			l.send("POST", "/v1/tasks", l.owner, `{"repo": "acme/app", "title": "Do it", "problem": "Do it."}`).want(http.StatusAccepted)
			var claim protocol.ClaimReply
			if err := box.ask(protocol.CallClaim, protocol.Claim{ID: "c", Free: 4, WaitMS: 5000}, &claim); err != nil || claim.Run == nil {
				t.Fatalf("claim: %+v %v", claim, err)
			}
			run := claim.Run
			text, err := box.secret.Open(protocol.TokensPurpose(run.Run), claim.Sealed)
			var tokens protocol.Tokens
			if err == nil {
				err = json.Unmarshal(text, &tokens)
			}
			if err != nil {
				t.Fatal(err)
			}
			if m := run.Submodules; m == nil || len(m.Known) != 1 || !strings.HasSuffix(m.Known[0].Key, "/acme/lib") {
				t.Errorf("it is told of the submodules %+v", m)
			}
			type rights struct{ fetch, push, download, upload int }
			none := rights{404, 404, 404, 404}
			for name, want := range map[string]rights{
				"acme/app": {200, 200, 200, 200}, "acme/lib": {200, 403, 200, 403}, "acme/secret": none, "acme/none": none,
				"rival/named": none, "rival/other": none, "rival/none": none,
			} {
				own := objects[name]
				if own.OID == "" {
					own = objects["acme/secret"]
				}
				got := rights{fetch: l.serves(name, tokens.Git, "git-upload-pack"), push: l.serves(name, tokens.Git, "git-receive-pack")}
				got.download, _, _ = l.batch(name, tokens.Git, gitlfs.Download, own)
				got.upload, _, _ = l.batch(name, tokens.Git, gitlfs.Upload, own)
				if got != want {
					t.Errorf("of %s it is answered %+v, want %+v", name, got, want)
				}
				// The object of another one, asked for where it may read.
				for of, p := range objects {
					status, a, said := l.batch(name, tokens.Git, gitlfs.Download, p)
					gives := status == 200 && len(a.Objects) == 1 && a.Objects[0].Actions["download"].Href != ""
					if gives != (of == name && name == "acme/lib") {
						t.Errorf("the object of %s in %s: %d %s", of, name, status, said)
					}
				}
			}
			// What it hands in names objects that its repository does not have, and nothing of them comes with it.
			for of, p := range objects {
				dir := t.TempDir()
				l.git(dir, tokens.Git, "clone", "-q", l.URL()+"/git/acme/app.git", ".")
				l.write(dir, ".gitattributes", []byte("*.bin filter=lfs diff=lfs merge=lfs -text\n"))
				l.write(dir, "stolen.bin", fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", p.OID, p.Size))
				blob := strings.TrimSpace(l.git(dir, "", "hash-object", "-w", "--no-filters", "stolen.bin"))
				l.git(dir, "", "add", ".gitattributes")
				l.git(dir, "", "update-index", "--add", "--cacheinfo", "100644,"+blob+",stolen.bin")
				l.git(dir, "", "commit", "-qm", "Steal")
				l.git(dir, tokens.Git, "push", "-q", "--no-verify", "origin", "+HEAD:refs/heads/"+run.Branch)
				for _, who := range []string{tokens.Git, l.owner} {
					if _, a, said := l.batch("acme/app", who, gitlfs.Download, p); len(a.Objects) != 1 || a.Objects[0].Error == nil {
						t.Errorf("with a pointer pushed, the object of %s is given: %s", of, said)
					}
				}
			}
			// The addresses that it was given end with it; those of people do not.
			address := func(name, token, operation string, p gitlfs.Pointer) string {
				_, a, said := l.batch(name, token, operation, p)
				if len(a.Objects) != 1 || a.Objects[0].Actions[operation].Href == "" {
					t.Fatalf("%s of %s: %s", operation, name, said)
				}
				return a.Objects[0].Actions[operation].Href
			}
			text = random(99, 700)
			mine, _ := objectOf(text)
			get, hers := address("acme/lib", tokens.Git, gitlfs.Download, objects["acme/lib"]),
				address("acme/lib", l.owner, gitlfs.Download, objects["acme/lib"])
			put := address("acme/app", tokens.Git, gitlfs.Upload, mine)
			forged := regexp.MustCompile(`by=[^&]*&`).ReplaceAllString(get, "")
			transfers := func(when string, want int) {
				t.Helper()
				for what, c := range map[string]struct {
					method, address string
					body            []byte
					want            int
				}{
					"its download": {"GET", get, nil, want}, "its upload": {"PUT", put, text, want},
					"its download as nobody's": {"GET", forged, nil, 403}, "a person's": {"GET", hers, nil, 200},
				} {
					if resp, said := l.transfer(c.method, c.address, c.body); resp.StatusCode != c.want {
						t.Errorf("%s, %s is answered %d: %.200s", when, what, resp.StatusCode, said)
					}
				}
			}
			transfers("while it lives", 200)
			end := protocol.Envelope{V: protocol.Version, Run: run.Run, Attempt: run.Attempt, Events: []protocol.Event{
				{Seq: 1, Kind: protocol.EventFinished, Data: []byte(`{"state":"failed","error":"x"}`)}}}
			if err := box.ask(protocol.CallAppend, end, nil); err != nil {
				t.Fatal(err)
			}
			transfers("after its end", 403)
			for _, name := range []string{"acme/app", "acme/lib", "acme/secret", "rival/named"} {
				if status := l.serves(name, tokens.Git, "git-upload-pack"); status != 401 {
					t.Errorf("after its end, of %s it is answered %d", name, status)
				}
			}
		})
	}
}
