package cli

import (
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/cli/exit"
)

// On the machine of a box doctor looks at a repository of the login that is enabled, and
// shows the token of the login to the server of that login alone.
func TestDoctorOfABox(t *testing.T) {
	t.Parallel()
	other := newFake(t, nil)
	f := newFake(t, map[string]string{"GET /healthz": "", "GET /v1/repos": `{"data": [{"clone_url": "SERVER/git/acme/web.git"}]}`})
	dir := t.TempDir()
	if err := (box.Identity{ServerURL: f.URL, NATSURL: "nats://127.0.0.1:1"}).Save(dir); err != nil {
		t.Fatal(err)
	}
	p := f.person(t, "YARDMASTER_BOX_DATA="+dir)
	p.holds("doctor", exit.CodeFailed, "box, server: "+f.URL+" answers",
		"the server answers, and refuses "+f.URL+"/git/acme/web.git to your login")
	if !f.was("GET /v1/repos?", "filter=enabled%3Atrue") || !f.was("GET /git/acme/web.git/info/refs") {
		t.Errorf("%q", f.calls)
	}
	f.answers["GET /v1/repos"] = `{"data": [{"clone_url": "` + other.URL + `/git/acme/web.git"}]}`
	if p.holds("doctor", exit.CodeFailed, "refuses a repository that does not exist, as it should"); other.was("") {
		t.Errorf("another server hears %q", other.calls)
	}
}

// A folder of a box that was named is one in which there has to be a box, whichever way it
// was named.
func TestDoctorOfAFolderWithoutABox(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /healthz": ""})
	dir := t.TempDir()
	const none = "box: there is no box in "
	f.person(t).holds("doctor", exit.CodeFailed, "!"+none)
	f.person(t).holds("doctor --data "+dir, exit.CodeFailed, none+dir, "`yardmaster box join` makes this machine one")
	f.person(t, "YARDMASTER_BOX_DATA="+dir).holds("doctor", exit.CodeFailed, none+dir)
}
