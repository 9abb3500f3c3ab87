package homes

import (
	"errors"
	"net/http/httptest"
	"reflect"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
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
		codehost.MergeOptions{},
		codehost.NoteOptions{}, codehost.StackOptions{}, codehost.Stacked{}, codehost.Tree{}, codehost.Found{}, codehost.Repo{},
		file{}, folder{}, merged{}, wanted{},
	} {
		walk(reflect.TypeOf(v).String(), reflect.TypeOf(v))
	}
}

// What the host of one node does with a repository, that of a cluster does: callers ask for what
// not every host can, and would go on without it.
func TestNothingIsLacking(t *testing.T) {
	t.Parallel()
	repos, here, all := 0, reflect.TypeFor[*builtin.Host](), reflect.TypeFor[*Host]()
	for m := range here.Methods() {
		of := m.Type
		is := func(i int) bool { return of.NumIn() > i && of.In(i) == reflect.TypeFor[codehost.Repo]() }
		if !is(1) && !is(2) {
			continue
		}
		repos++
		has, there := all.MethodByName(m.Name)
		same := there && has.Type.NumIn() == of.NumIn() && has.Type.NumOut() == of.NumOut()
		for i := 1; same && i < of.NumIn(); i++ {
			same = has.Type.In(i) == of.In(i)
		}
		for i := 0; same && i < of.NumOut(); i++ {
			same = has.Type.Out(i) == of.Out(i)
		}
		if !same {
			t.Errorf("the host of a cluster lacks %s", m.Name)
		}
	}
	if repos < 20 {
		t.Errorf("%d methods are about a repository", repos)
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
