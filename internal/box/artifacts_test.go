package box_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/protocol"
)

// shelf is where a test's control plane has boxes store files.
type shelf struct {
	*httptest.Server
	mu   sync.Mutex
	asks []protocol.ArtifactAsk
	had  map[string]string
}

// keep has the control plane take artifacts.
func keep(t *testing.T, p *plane) *shelf {
	t.Helper()
	s := &shelf{had: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPut || r.Header.Get("X-Way") != "1" || r.Header.Get("Authorization") != "" {
			t.Errorf("an upload %s %s: %v", r.Method, r.Header, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.had[strings.TrimPrefix(r.URL.Path, "/")] = string(b)
	}))
	t.Cleanup(s.Close)
	if err := p.bus.Handle(protocol.CallArtifact, handler(func(_ context.Context, in protocol.ArtifactAsk) (protocol.ArtifactPlace, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asks = append(s.asks, in)
		return protocol.ArtifactPlace{URL: s.URL + "/" + in.Run + "-" + in.Name, Headers: map[string]string{"X-Way": "1"}}, nil
	})); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestArtifactsOfARun holds that what an agent leaves in its folder is stored when the run is
// over, without secrets, and that nothing else is: no link, no other type, not too much.
func TestArtifactsOfARun(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.secrets = []protocol.Secret{{Name: "PIN", Delivery: protocol.DeliverEnv, Value: []byte("hunter22")}}
	stored := keep(t, p)
	p.start(p.config())
	png := `printf '\211PNG\r\n\032\n0000`
	for name, c := range map[string]struct {
		do      string
		stored  map[string]string
		refused int
	}{
		"a log and a picture": {`echo "the key is hunter22" >build.log; ` + png + `' >shot.png`,
			map[string]string{"build.log": "the key is *", "shot.png": "\x89PNG"}, 0},
		"a secret in a picture":  {png + `hunter22' >shot.png`, nil, 1},
		"a secret in a name":     {`echo x >hunter22.txt`, nil, 1},
		"a picture that is none": {`echo '<svg onload=x>' >shot.png`, nil, 1},
		"other types":            {`echo x >a.sh; echo x >b.svg; echo x >c; echo x >d.txt`, map[string]string{"d.txt": "x"}, 3},
		"a link out":             {`ln -s /etc/passwd a.txt; ln -s ../../../.. up; mkdir dir.txt; mkfifo p.log`, nil, 4},
		"a huge file":            {`head -c 11000000 /dev/zero >a.log`, nil, 1},
		"the folder a link":      {`cd ..; rm -rf artifacts; ln -s /etc artifacts`, nil, 0},
		"nothing":                {`true`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := p.task(func(s *protocol.Start) {
				s.Branch, s.Kind = "", "scout"
				s.Prompt = fmt.Sprintf("run cd \"$%s\"; %s\nreport # Done", box.ArtifactsVariable, c.do)
			})
			s, f := p.finish(run)
			refused := all[protocol.OutboxRefused](t, s, protocol.EventRefused)
			if f.State != protocol.Succeeded || len(refused) != c.refused {
				t.Errorf("finished %+v, refused %+v", f, refused)
			}
			stored.mu.Lock()
			defer stored.mu.Unlock()
			n := 0
			for _, a := range stored.asks {
				if a.Run == run {
					n++
				}
			}
			if n != len(c.stored) {
				t.Errorf("%d files were stored, not %d", n, len(c.stored))
			}
			for name, begins := range c.stored {
				got, ok := stored.had[run+"-"+name]
				begins, hides := strings.CutSuffix(begins, "*")
				if !ok || !strings.HasPrefix(got, begins) || hides && strings.Contains(got, "hunter22") {
					t.Errorf("%s is stored as %q", name, got)
				}
			}
		})
	}
}

// TestTooManyArtifacts holds the number of files, and that a run that declares nothing stores
// nothing.
func TestTooManyArtifacts(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	stored := keep(t, p)
	p.start(p.config())
	for _, mute := range []bool{false, true} {
		run := p.task(func(s *protocol.Start) {
			s.Branch, s.Kind, s.Mute = "", "scout", mute
			s.Prompt = fmt.Sprintf("run cd \"$%s\"; i=0; while [ $i -lt 200 ]; do echo x >$i.txt; i=$((i+1)); done\nreport # Done", box.ArtifactsVariable)
		})
		s, _ := p.finish(run)
		want, told := protocol.MaxArtifacts, 1
		if mute {
			want, told = 0, 0
		}
		stored.mu.Lock()
		if refused := all[protocol.OutboxRefused](t, s, protocol.EventRefused); len(stored.asks) != want || len(refused) != told {
			t.Errorf("mute %t: %d files are stored, refused %+v", mute, len(stored.asks), refused)
		}
		stored.asks = nil
		stored.mu.Unlock()
	}
}
