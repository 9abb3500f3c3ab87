package box

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/executable"
)

func TestEnroll(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		var e Enrollment
		f.want(201, "", "POST", "/v1/runners/enrollments", map[string]any{"slots": 3, "labels": map[string]string{"zone": "b"}}).into(t, &e)
		if !id.Checked(id.Enrollment, e.Token) ||
			e.Join != "printf 'X-Svc-Enroll-Token: %s' "+e.Token+" | curl -fsS -H @- http://127.0.0.1:8080/join | sh" {
			t.Errorf("enrollment %+v", e)
		}
		if left := time.Until(e.ExpiresISO); left > time.Hour || left < 59*time.Minute {
			t.Errorf("the token lives %s", left)
		}
		key := publicKey(t)
		in := map[string]any{"public_key": key, "name": "desk", "version": "1.0.0", "os": "linux", "arch": "arm64", "slots": 8,
			"labels": map[string]string{"zone": "a", "gpu": "no"}}
		var c Credentials
		f.want(201, "", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", e.Token).into(t, &c)
		if c.AccountID != "acme" || c.RunToken == nil || !id.Checked(id.RunToken, *c.RunToken) || c.NATSURL != f.bus.URL() ||
			c.NATSJWT == "" {
			t.Errorf("credentials %+v", c)
		}
		b := f.box(c.ID)
		if b.Name != "desk" || b.State != Enrolled || b.Slots != 3 || b.Labels["zone"] != "b" || b.Labels["gpu"] != "no" ||
			b.Owner.Target != Org || *b.Owner.ID != "acme" || b.Presence.Status != Offline || b.OS != "linux" || b.Arch != "arm64" {
			t.Errorf("box %+v", b)
		}
		if who := read(f, auditActor, c.ID, "box.enrolled"); who != "box:"+c.ID {
			t.Errorf("enrolled by %s", who)
		}

		in["public_key"] = publicKey(t)
		f.want(400, "enrollment-refused", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", e.Token)
		f.want(400, "enrollment-refused", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", id.Secret(id.Enrollment))
		f.want(400, "enrollment-refused", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", "dev_enr_short")
		f.want(400, "enrollment-refused", "POST", "/v1/runners/enroll", in)

		// An enrollment that fails for another reason does not use the token
		// up.
		e = f.mint()
		in["public_key"] = "no key"
		f.want(400, "invalid", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", e.Token)
		in["public_key"] = key
		f.want(400, "invalid", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", e.Token)
		in["public_key"] = publicKey(t)
		f.want(201, "", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", e.Token)

		e = f.mint()
		f.write(func(tx *db.Tx) error { _, err := expireAll.Exec(tx); return err })
		in["public_key"] = publicKey(t)
		f.want(400, "enrollment-refused", "POST", "/v1/runners/enroll", in, "X-Svc-Enroll-Token", e.Token)
	})
}

func TestEnrollmentIsSingleUse(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		token := f.mint().Token
		const twins = 20
		keys := make([]string, twins)
		for i := range keys {
			keys[i] = publicKey(t)
		}
		var mu sync.Mutex
		statuses := map[int]int{}
		var all sync.WaitGroup
		for _, key := range keys {
			all.Go(func() {
				a := f.call("POST", "/v1/runners/enroll", map[string]any{"public_key": key}, "X-Svc-Enroll-Token", token)
				mu.Lock()
				defer mu.Unlock()
				statuses[a.status]++
			})
		}
		all.Wait()
		if statuses[201] != 1 || statuses[400] != twins-1 {
			t.Errorf("statuses %v", statuses)
		}
		if n := read(f, countBoxes, "acme"); n != 1 {
			t.Errorf("%d boxes", n)
		}
	})
}

func TestJoinScript(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		token := f.mint().Token
		f.want(400, "invalid", "GET", "/join", nil, "X-Svc-Enroll-Token", token[:len(token)-1]+"'")
		f.want(400, "invalid", "GET", "/join", nil)
		a := f.want(200, "", "GET", "/join", nil, "X-Svc-Enroll-Token", token)
		dir := t.TempDir()
		run := func() (string, error) {
			sh := exec.Command("/bin/sh")
			sh.Env = []string{"PATH=" + dir}
			sh.Stdin = strings.NewReader(a.body)
			out, err := sh.CombinedOutput()
			return string(out), err
		}
		if out, err := run(); err == nil || !strings.Contains(out, "not installed") || !strings.Contains(out, "http://127.0.0.1:8080") {
			t.Errorf("without yardmaster: %v, %s", err, out)
		}
		if err := executable.Write(filepath.Join(dir, "yardmaster"), []byte("#!/bin/sh\necho \"$*\"\necho \"$YARDMASTER_ENROLL_TOKEN\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := run(); err != nil || out != "box join --url http://127.0.0.1:8080\n"+token+"\n" {
			t.Errorf("the script runs %q (%v)", out, err)
		}
		f.want(201, "", "POST", "/v1/runners/enroll", map[string]any{"public_key": publicKey(t)}, "X-Svc-Enroll-Token",
			token) // it was not consumed
	})
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "a b", "it's", "$(id)", "`id`", "a\nb", `\`, "'", "http://[::1]:80/?a=1&b=2"} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("quote(%q) = %s, which the shell reads as %q (%v)", s, quote(s), out, err)
		}
	}
}

func TestCredsReissue(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		key := publicKey(t)
		c := f.enrolled(key)
		reissue := func(token, key string) Credentials {
			t.Helper()
			var out Credentials
			f.want(200, "", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": key},
				"Authorization", "Bearer "+token).into(t, &out)
			if out.ID != c.ID || out.NATSJWT == "" || out.AccountID != "acme" {
				t.Errorf("reissued %+v", out)
			}
			return out
		}
		if got := reissue(*c.RunToken, key); got.RunToken != nil || !got.RunTokenExpiresISO.Equal(c.RunTokenExpiresISO) {
			t.Errorf("a young token was renewed: %+v", got)
		}
		f.write(func(tx *db.Tx) error { _, err := expireSoon.Exec(tx, c.ID, tx.Now.Add(9*24*time.Hour)); return err })
		second := reissue(*c.RunToken, key)
		if second.RunToken == nil || time.Until(second.RunTokenExpiresISO) < 29*24*time.Hour {
			t.Fatalf("an old token was not renewed: %+v", second)
		}
		third := reissue(*c.RunToken, key) // as if the answer had been lost
		if third.RunToken == nil {
			t.Fatal("a token whose successor was never used gets no other")
		}
		f.want(401, "unauthenticated", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": key}, "Authorization",
			"Bearer "+*second.RunToken)
		reissue(*third.RunToken, key)
		f.want(401, "unauthenticated", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": key}, "Authorization",
			"Bearer "+*c.RunToken)

		// A new key revokes the one before: no box can use that any more.
		reissue(*third.RunToken, publicKey(t))
		f.want(400, "invalid", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": key}, "Authorization",
			"Bearer "+*third.RunToken)
		f.want(400, "invalid", "POST", "/v1/runners/enroll", map[string]string{"public_key": key}, "X-Svc-Enroll-Token", f.mint().Token)

		for _, bad := range []string{"", "Bearer", "Bearer " + id.Secret(id.RunToken), "Basic " + *third.RunToken} {
			f.want(401, "unauthenticated", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": key}, "Authorization", bad)
		}
		f.want(200, "", "POST", "/v1/runners/"+c.ID+"/revoke", nil)
		f.want(403, "box-revoked", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": publicKey(t)}, "Authorization",
			"Bearer "+*third.RunToken)
		f.want(404, "not-found", "POST", "/v1/runners/"+c.ID+"/creds/reissue", nil)

		// Its account is deleted, and its row with it; whoever slept meanwhile hears that it is revoked.
		f.write(func(tx *db.Tx) error {
			_, err := deleteKeys.Exec(tx, c.ID)
			_, also := deleteBox.Exec(tx, c.ID)
			return errors.Join(err, also)
		})
		f.want(403, "box-revoked", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": publicKey(t)}, "Authorization",
			"Bearer "+*third.RunToken)
		if _, _, err := f.Service.Actor(t.Context(), *third.RunToken); !fault.IsKind(err, fault.Unauthenticated) {
			t.Errorf("its token for what any credential may call: %v", err)
		}
		f.write(func(tx *db.Tx) error { _, err := expireRevoked.Exec(tx); return err })
		f.Service.sweepOnce(t.Context())
		f.want(401, "unauthenticated", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": publicKey(t)}, "Authorization",
			"Bearer "+*third.RunToken)
	})
}

func TestHardeningReport(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		c := f.enrolled(publicKey(t))
		if f.box(c.ID).Hardening != nil {
			t.Error("a report before the first")
		}
		in := map[string]any{"firewall": "active", "exposed_ports": []map[string]any{{"port": 22, "protocol": "tcp"}}}
		f.want(200, "", "POST", "/v1/runners/hardening", in, "Authorization", "Bearer "+*c.RunToken)
		if h := f.box(c.ID).Hardening; h == nil || h.Firewall != "active" || len(h.ExposedPorts) != 1 || h.ExposedPorts[0].Port != 22 {
			t.Errorf("stored %+v", h)
		}
		f.want(401, "unauthenticated", "POST", "/v1/runners/hardening", in)
		in["exposed_ports"] = []map[string]any{{"port": 0, "protocol": "tcp"}}
		f.want(400, "invalid", "POST", "/v1/runners/hardening", in, "Authorization", "Bearer "+*c.RunToken)
	})
}

func TestWithoutSigningKey(t *testing.T) {
	t.Parallel()
	onBoth(t, false, func(t *testing.T, f *fixture) {
		f.want(503, "no-signing-key", "POST", "/v1/runners/enroll", map[string]string{"public_key": publicKey(t)},
			"X-Svc-Enroll-Token", f.mint().Token)
	})
}
