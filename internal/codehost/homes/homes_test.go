package homes

import (
	"errors"
	"net/http/httptest"
	"reflect"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// Everything that nodes ask and answer is whole when it has crossed: no field of it is one
// that does not travel.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	var walk func(at string, of reflect.Type)
	walk = func(at string, of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(at+"[]", of.Elem())
		case reflect.Interface, reflect.Func, reflect.Chan:
			t.Errorf("%s is a %s", at, of.Kind())
		case reflect.Struct:
			if of.PkgPath() == "time" {
				return
			}
			for f := range of.Fields() {
				if !f.IsExported() || f.Tag.Get("json") == "-" {
					t.Errorf("%s.%s does not travel", at, f.Name)
				}
				walk(at+"."+f.Name, f.Type)
			}
		}
	}
	for _, v := range []any{
		codehost.CreateOptions{}, codehost.Info{}, codehost.WriteOptions{}, codehost.FirstOptions{}, codehost.Comparison{},
		codehost.OutcomeOptions{}, codehost.Outcome{}, codehost.Made{}, codehost.Unwanted{}, codehost.DiffOptions{}, codehost.Diff{},
		codehost.MergeOptions{}, codehost.StackOptions{}, codehost.Stacked{}, codehost.Tree{}, codehost.Found{}, codehost.Repo{},
		file{}, folder{}, merged{}, wanted{},
	} {
		walk(reflect.TypeOf(v).String(), reflect.TypeOf(v))
	}
}

// A fault is the same one on the other side.
func TestFaultsTravel(t *testing.T) {
	t.Parallel()
	for _, err := range []*fault.Error{codehost.ErrNotFound, codehost.ErrHeadMoved, codehost.ErrLost, fault.Field("path", "is long")} {
		got := failed(err).err(Node{ID: "a"})
		if !errors.Is(got, err) || fault.From(got).Detail != err.Detail || len(fault.From(got).Fields) != len(err.Fields) {
			t.Errorf("%v arrives as %v", err, got)
		}
	}
	if got := failed(errors.New("a secret cause")).err(Node{}); fault.From(got).Kind != fault.Internal {
		t.Errorf("an unknown error arrives as %v", got)
	}
}

// Only what git clients ask for is relayed.
func TestGitRequests(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/git/acme/web.git/info/refs": "acme/web", "/git/acme/web/git-upload-pack": "acme/web",
		"/git/acme/web.git/git-receive-pack":       "acme/web",
		"/git/acme/web.git/info/lfs/objects/batch": "", "/git/acme": "", "/v1/repos/a/b": "",
	} {
		r, is := gitRequest(httptest.NewRequest("GET", path, nil))
		if is != (want != "") || is && r.String() != want {
			t.Errorf("%s is about %q, %v", path, r, is)
		}
	}
}
