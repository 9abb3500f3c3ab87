package oauth

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/id"
)

func (y *yard) begin(body string) DeviceAuthorization {
	y.t.Helper()
	var d DeviceAuthorization
	y.call(answer{200, &d}, "POST", "/auth/device", "", body)
	return d
}

func poll(d DeviceAuthorization) string {
	return url.Values{
		"device_code": {d.DeviceCode},
		"grant_type":  {"urn:ietf:params:oauth:grant-type:device_code"},
		"client_id":   {"any"},
	}.Encode()
}

const pollPath = "/auth/device/token"

func TestDeviceTakesItsTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		d := y.begin(`{"client_name": "bench", "client_id": "ignored"}`)
		if d.URI != base+"/device" || d.Complete != d.URI+"?user_code="+d.UserCode || d.ExpiresIn != 600 {
			t.Errorf("%+v", d)
		}
		y.refused("authorization_pending", "POST", pollPath, "", poll(d))
		y.pass(time.Second)
		y.refused("slow_down", "POST", pollPath, "", poll(d))
		y.pass(time.Duration(d.Interval) * time.Second)
		y.refused("authorization_pending", "POST", pollPath, "", poll(d))
		y.refused("invalid_grant", "POST", pollPath, "", "device_code="+id.Opaque())
		y.refused("invalid_grant", "POST", pollPath, "", "")

		// The code is typed in lower case and with a space.
		sloppy := strings.ToLower(strings.Replace(d.UserCode, "-", " ", 1))
		ticket := y.shown("/device?"+url.Values{"user_code": {sloppy}}.Encode(), owner)
		y.call(answer{200, nil}, "POST", "/device", owner, decision(ticket, "authorize"))
		y.call(answer{404, nil}, "GET", "/device?user_code="+d.UserCode, owner, "")
		y.refused("bad-ticket", "POST", "/device", owner, decision(ticket, "cancel"))
		var g Grant
		y.call(answer{200, &g}, "POST", pollPath, "", poll(d))
		if strings.Contains(g.Scope, "admin:accounts") || !strings.Contains(g.Scope, "write:tasks") || len(y.live()) != 1 {
			t.Errorf("the grant is %+v", g)
		}
		y.refused("invalid_grant", "POST", pollPath, "", poll(d))
		if live := y.live(); len(live) != 0 {
			t.Errorf("the code was used twice, and %v live", live)
		}
	})
}

func TestDeviceIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.refused("invalid_scope", "POST", "/auth/device", "", "scope=read:nonsense")
		y.refused("invalid_request", "POST", "/auth/device", "", `{"client_name": "a\nb"}`)

		// The approver has fewer scopes than the program asks for: it gets fewer, or
		// none.
		d := y.begin(`{"scope": "read:tasks write:tasks"}`)
		y.call(answer{403, nil}, "GET", "/device?user_code="+d.UserCode, "s1 acme read:account", "")
		narrow := "s1 acme read:tasks"
		ticket := y.shown("/device?user_code="+d.UserCode, narrow)
		for _, session := range []string{"", "s2 acme read:tasks", "s1 rival read:tasks", "s1 acme read:account"} {
			y.refused("bad-ticket", "POST", "/device", session, decision(ticket, "authorize"))
		}
		y.refused("bad-ticket", "POST", authorizePath, narrow, decision(ticket, "authorize"))
		y.call(answer{200, nil}, "POST", "/device", narrow, decision(ticket, "authorize"))
		var g Grant
		y.call(answer{200, &g}, "POST", pollPath, "", poll(d))
		if g.Scope != "read:tasks" {
			t.Errorf("the grant is %+v", g)
		}

		no := y.begin(`{}`)
		y.call(answer{200, nil}, "POST", "/device", owner, decision(y.shown("/device?user_code="+no.UserCode, owner), "cancel"))
		y.refused("access_denied", "POST", pollPath, "", poll(no))

		late := y.begin(`{}`)
		ticket = y.shown("/device?user_code="+late.UserCode, owner)
		y.pass(deviceLife)
		y.call(answer{404, nil}, "GET", "/device?user_code="+late.UserCode, owner, "")
		y.refused("bad-ticket", "POST", "/device", owner, decision(ticket, "authorize"))
		y.refused("expired_token", "POST", pollPath, "", poll(late))
	})
}

// What anybody can begin and nobody has approved is forgotten soon; who got a token with a code that
// comes again loses it, however late.
func TestDevicesThatNobodyApproved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		left, taken := y.begin(`{}`), y.begin(`{}`)
		y.call(answer{200, nil}, "POST", "/device", owner, decision(y.shown("/device?user_code="+taken.UserCode, owner), "authorize"))
		y.call(answer{200, nil}, "POST", pollPath, "", poll(taken))
		y.pass(2*deviceLife + time.Second)
		y.refused("expired_token", "POST", pollPath, "", poll(left))
		y.begin(`{}`)
		y.refused("invalid_grant", "POST", pollPath, "", poll(left))
		if len(y.live()) != 1 {
			t.Errorf("live are %v", y.live())
		}
		y.refused("invalid_grant", "POST", pollPath, "", poll(taken))
		if len(y.live()) != 0 {
			t.Errorf("the code came again, and %v live", y.live())
		}
	})
}
