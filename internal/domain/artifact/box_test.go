package artifact

import (
	"encoding/json"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// A box stores what a run leaves that it holds, in the account of the run, bounded in kind, size
// and number; it stores nothing for any other run.
func TestOfARun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		ask := protocol.ArtifactAsk{Run: y.places.run, Attempt: 1, Name: "a.log", Type: "text/plain", Size: 5,
			SHA256: strings.Repeat("0", 64)}
		call := func(box string, change func(*protocol.ArtifactAsk)) (protocol.ArtifactPlace, error) {
			in := ask
			if change != nil {
				change(&in)
			}
			data, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			out, err := y.fromBox(t.Context(), box, data)
			place, _ := out.(protocol.ArtifactPlace)
			return place, err
		}
		place, err := call("box", nil)
		if err != nil {
			t.Fatal(err)
		}
		if status := y.send(Upload{UploadURL: place.URL, UploadHeaders: place.Headers}, "hello"); status != 200 {
			t.Fatalf("the upload answers %d", status)
		}
		key := strings.SplitN(strings.SplitN(place.URL, "/blob/", 2)[1], "?", 2)[0]
		y.Stored(y.ctx, key)
		all, err := y.Service.list(y.ctx, listIn{op.FirstPage("artifact.list", &op.Paging{Default: 50})})
		if err != nil || len(all.Data) != 1 {
			t.Fatalf("%+v: %v", all, err)
		}
		if a := all.Data[0]; a.Visibility != OfRun || a.CreatedBy != "box:box" || *a.RunID != y.places.run || *a.TaskID != y.places.task ||
			*a.RepoID != y.places.repo || *a.SHA256 != ask.SHA256 {
			t.Errorf("it is %+v", a)
		}
		for what, c := range map[string]struct {
			box    string
			change func(*protocol.ArtifactAsk)
			kind   fault.Kind
		}{
			"another box":  {"other", nil, fault.NotFound},
			"another run":  {"box", func(a *protocol.ArtifactAsk) { a.Run = "0199d3a4-5b6c-7d8e-9f01-23456789abcd" }, fault.NotFound},
			"another try":  {"box", func(a *protocol.ArtifactAsk) { a.Attempt = 2 }, fault.NotFound},
			"a path":       {"box", func(a *protocol.ArtifactAsk) { a.Name = "../a.log" }, fault.Invalid},
			"another type": {"box", func(a *protocol.ArtifactAsk) { a.Type = "image/svg+xml" }, fault.Invalid},
			"too large":    {"box", func(a *protocol.ArtifactAsk) { a.Size = protocol.MaxArtifactBytes + 1 }, fault.Invalid},
			"no digest":    {"box", func(a *protocol.ArtifactAsk) { a.SHA256 = "x" }, fault.Invalid},
		} {
			if _, err := call(c.box, c.change); !fault.IsKind(err, c.kind) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for range MaxOfRun - 1 {
			if _, err := call("box", nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := call("box", nil); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("one more than a run may store: %v", err)
		}
		y.room.full = true
		ask.Run = y.places.run
		if _, err := call("box", nil); err == nil {
			t.Error("an account without room stores more")
		}
	})
}
