package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
)

// land pushes some files, and gitlinks by path, as one commit on a branch of a repository.
func (l *lab) land(name, branch string, files, links map[string]string) (sha string) {
	l.t.Helper()
	dir := l.t.TempDir()
	l.git(dir, "", "init", "-q")
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			l.t.Fatal(err)
		}
		l.write(dir, path, []byte(text))
	}
	l.git(dir, "", "add", "-A")
	for path, commit := range links {
		l.git(dir, "", "update-index", "--add", "--cacheinfo", "160000,"+commit+","+path)
	}
	l.git(dir, "", "commit", "-qm", "Begin")
	l.git(dir, l.owner, "push", "-q", l.URL()+"/git/"+name+".git", "HEAD:"+branch)
	return strings.TrimSpace(l.git(dir, "", "rev-parse", "HEAD"))
}

// Agents and checks have the submodules that the default branch names, nested ones too, at
// their commits, with their files of Git LFS; those that cannot be had are named once, and
// their folders stay. What an agent does inside of one is not handed in.
func TestSubmodulesForAgentsAndChecks(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			l := start(t, e).lab()
			deep := l.land("acme/deep", "main", map[string]string{"deep.txt": "deep\n"}, nil)
			first := l.land("acme/lib", "old", map[string]string{"README.md": "lib\n", ".gitmodules": "[submodule \"d\"]\n\tpath = d\n\turl = ../deep\n"},
				map[string]string{"d": deep})
			l.land("acme/lib", "main", map[string]string{"README.md": "newer\n", ".gitmodules": "[submodule \"d\"]\n\tpath = d\n\turl = ../deep\n"},
				map[string]string{"d": deep})
			art := l.work("acme/art", map[string][]byte{"a.bin": random(11, 5000)})
			l.git(art, l.owner, "push", "-q", "origin", "main")
			picture := strings.TrimSpace(l.git(art, "", "rev-parse", "HEAD"))
			secret := l.land("acme/secret", "main", map[string]string{"secret.txt": "secret\n"}, nil)
			app := map[string]string{
				"README.md": "app\n",
				".gitmodules": "[submodule \"vendor/lib\"]\n\tpath = vendor/lib\n\turl = ../lib.git\n" +
					"[submodule \"art\"]\n\tpath = art\n\turl = " + l.URL() + "/git/acme/art.git\n" +
					"[submodule \"lost\"]\n\tpath = lost\n\turl = ../lib.git\n" +
					"[submodule \"far\"]\n\tpath = far\n\turl = https://example.com/acme/far.git\n",
				".svc/policy.yml": "version: 1\nreview: {mode: off}\nchecks: {command: 'test \"$(cat vendor/lib/README.md vendor/lib/d/deep.txt | tr -d \"\\n\")\" = libdeep " +
					"&& test $(wc -c <art/a.bin) = 5000', timeout: 5m}\n",
			}
			links := map[string]string{"vendor/lib": first, "art": picture, "lost": strings.Repeat("ab", 20), "far": deep}
			l.land("acme/app", "main", app, links)
			// The agent adds a submodule that nobody has approved: its check does not get it.
			p := l.works("acme/app", `set -e; test "$(cat vendor/lib/README.md)" = lib; test -z "$(git status --short)"; cp "$YARDMASTER_PROMPT" prompt; `+
				`echo more >>vendor/lib/README.md; git -C art commit -qm x --allow-empty; `+
				`git config -f .gitmodules submodule.s.path s; git config -f .gitmodules submodule.s.url ../secret.git; `+
				`git update-index --add --cacheinfo 160000,`+secret+`,s; git add prompt .gitmodules; git commit -qm prompt`)
			if p.Checks != "passed" {
				t.Errorf("the check has %s", p.Checks)
			}
			there := filepath.Join(t.TempDir(), "clone")
			l.git("/", l.owner, "clone", "-q", "--no-checkout", l.URL()+"/git/acme/app.git", there)
			told := l.git(there, "", "show", p.HeadSHA+":prompt")
			for _, want := range []string{
				"* `lost`: a submodule of \"../lib.git\": its repository does not have the commit abababababab",
				"* `far`: a submodule of \"https://example.com/acme/far.git\": that is no repository of the account that .gitmodules of the default branch names",
			} {
				if strings.Count(told, want) != 1 {
					t.Errorf("the agent was not told %s\n%s", want, told)
				}
			}
			if n := strings.Count(told, "a submodule of"); n != 2 {
				t.Errorf("%d submodules are lacking:\n%s", n, told)
			}
			tree := l.git(there, "", "ls-tree", p.HeadSHA, "vendor/lib", "art", "lost", "far", "s")
			for path, commit := range links {
				if !strings.Contains(tree, "160000 commit "+commit+"\t"+path) {
					t.Errorf("%s is not at %s:\n%s", path, commit, tree)
				}
			}
			var tasks struct{ Data []struct{ ID string } }
			decode(t, l.send("GET", "/v1/tasks?per_page=50", l.owner, "").want(200), &tasks)
			told = ""
			for _, task := range tasks.Data {
				told += string(l.send("GET", "/v1/tasks/"+task.ID+"/events?per_page=100", l.owner, "").body)
			}
			if !strings.Contains(told, `"path":"s","reason":"a submodule of \"../secret.git\": that is no repository`) {
				t.Errorf("no run tells that s is not there:\n%s", told)
			}
		})
	}
}
