//go:build !race

package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/settings", "You")
	b.See("ada@example.com")
	b.Fill("Text", "Be brief.")
	b.Button("Save")
	b.See("Saved.")
	b.See("Another one ends your other sessions.")
	b.Fill("Password until now", rig.Password)
	b.Fill("New password", "short")
	b.Button("Change it")
	b.Until("the refusal at its field", `document.querySelector("[name=password][aria-invalid=true]")`)
	b.Fill("New password", "another long one")
	b.Button("Change it")
	b.See("It holds from the next sign-in on.")
	shoot(b, "you")
	b.Choose("theme", "dark")
	b.Until("it is dark", `document.documentElement.dataset.theme === "dark"`)
	visit(b, "/ui/settings/account", "Account")
	b.Until("it is dark after loading", `document.documentElement.dataset.theme === "dark"`)
	browser.Eval[any](b, `localStorage.clear()`)
	b.Fill("Zone", "Nowhere/Land")
	b.Button("Set")
	b.Until("the refusal at its field", `document.querySelector("[name=zone][aria-invalid=true]")`)
	b.Fill("Zone", "Europe/Berlin")
	b.Button("Set")
	b.See("Set.")
	b.Fill("A task may cost", "7.5")
	b.Button("Replace the floors")
	b.See("They hold from the next decision on")
	shoot(b, "account")
	if got := call[struct {
		Usd *float64 `json:"task_usd"`
	}](y, http.MethodGet, "/v1/account/floors", "").Usd; got == nil || *got != 7.5 {
		t.Errorf("the floor is %v", got)
	}

	visit(b, "/ui/settings/members", "Members")
	b.See("(you)")
	b.Fill("E-mail, or login", "eve@example.com")
	b.Button("Invite")
	b.See("Link of the invitation")
	b.See("This server sends no mail: send the link to eve@example.com yourself.")
	b.See("yardmaster mail eve@example.com")
	shoot(b, "members")
	b.Button("I have kept it")
	b.Gone("Link of the invitation")
	b.Button("Withdraw")
	b.Yes()
	b.See("revoked")

	visit(b, "/ui/settings/tokens", "Tokens")
	b.Button("New token")
	b.See("file, cancel, answer")
	shoot(b, "token-new")
	b.Fill("Name", "ci")
	b.Button("Mint it")
	b.See("dev_pat_")
	shoot(b, "token-once")
	b.Until("the token", `document.querySelector(".secret code")?.innerText`)
	token := browser.Eval[string](b, `document.querySelector(".secret code").innerText`)
	if resp, text := y.Send(http.MethodGet, "/v1/me", token, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("the token answers %d %s", resp.StatusCode, text)
	}
	b.Button("I have kept it")
	b.Until("the token is gone", `!document.body.innerText.includes(`+quoted(token)+`)`)
	b.Button("Revoke")
	b.Yes()
	b.Until("it is revoked", `document.querySelector(".item .status.bad")`)
	if resp, _ := y.Send(http.MethodGet, "/v1/me", token, ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked token answers %d", resp.StatusCode)
	}

	keysAndModels(y, b)

	visit(b, "/ui/settings/secrets", "Secrets")
	b.Fill("Name", "NPM_TOKEN")
	b.Fill("Value", "not to be read")
	b.Button("Keep it")
	b.See("NPM_TOKEN")
	b.Button("Delete")
	b.Yes()
	b.See("There is no secret")
	content(b)
}

// keysAndModels adds a key to each pool, changes what can be changed of them, and says which
// model ada likes best.
func keysAndModels(y *rig.Yard, b *browser.Tab) {
	b.T.Helper()
	visit(b, "/ui/settings/keys", "Keys and models")
	b.See("There is no key")
	b.See("You have none.")
	b.Choose("provider", "scripted")
	b.Button("Which models?")
	b.Until("the models", `document.querySelector("form [role=status]")?.innerText.includes("model")`)
	b.Button("Add it")
	b.See("not used yet")
	b.Button("Verify")
	b.See("The provider takes it.")
	b.Button("Models")
	b.Button("Change")
	b.Fill("Priority", "7")
	b.Button("Set the priority")
	b.See("priority 7")
	b.Fill("Calls at once", "4")
	b.Button("Set the calls")
	b.See("4 calls at once")
	b.Choose("kind", "subscription")
	b.Button("Set how it is paid")
	b.See("subscription")
	b.Fill("Budget of the account", "25")
	b.Button("Set the budget")
	b.See("of $25.00")
	call[any](y, http.MethodPost, "/v1/me/keys", `{"provider": "openai", "key": "sk-0123456789abcdef", "label": "mine alone"}`)
	call[any](y, http.MethodPut, "/v1/me/llm-pref", `{"provider": "anthropic", "model": "claude-opus-4-1"}`)
	visit(b, "/ui/settings/keys", "Keys and models")
	b.See("mine alone")
	b.See("There is no key for it")
	shoot(b, "keys")
	b.Button("Back to the account's default")
	b.Gone("There is no key for it")
	b.See("Nothing is sent.")
}

// What somebody types while a form is on its way stays in its field.
func TestFormLeavesWhatIsTyped(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	b.Before(`{ const real = fetch; window.fetch = async (...a) => {
		if (["POST", "PUT"].includes(a[1]?.method)) await new Promise(go => { window.letGo = go });
		return real(...a) } }`)
	visit(b, "/ui/settings/secrets", "Secrets")
	b.Fill("Name", "NPM_TOKEN")
	b.Fill("Value", "not to be read")
	b.Button("Keep it")
	b.Until("it is on its way", `window.letGo`)
	browser.Eval[any](b, `(e => { e.focus(); e.select() })(document.querySelector("main form input[name=name]"))`)
	b.Type("NEXT")
	browser.Eval[any](b, `(letGo(), null)`)
	b.Until("it is kept", `[...document.querySelectorAll("main li, main [role=row], main .item")].some(e => e.innerText.includes("NPM_TOKEN"))`)
	b.Until("the fields", `(f => f.name.value === "NEXT" && f.value.value === "" && document.activeElement === f.name)(Object.fromEntries([...document.querySelectorAll("main form [name]")].map(e => [e.name, e])))`)
}

func TestSettingsOfSending(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(nasty))
	}))
	t.Cleanup(receiver.Close)
	y, b := begin(t, "--allow-networks", "127.0.0.0/8")
	visit(b, "/ui/settings/webhooks", "Webhooks")
	b.Fill("Name", "ours")
	b.Fill("Address", receiver.URL+"/x")
	b.Button("Add it")
	b.See("Secret that signs")
	b.Button("I have kept it")
	b.Button("Test")
	b.Until("an attempt", `document.querySelector("[aria-label=Attempts] .item")`)
	b.See("418")
	b.Button("Answer")
	b.See("‹U+202E›")
	shoot(b, "webhooks")

	visit(b, "/ui/settings/integrations", "Integrations")
	b.Choose("kind", "generic")
	b.Fill("Name", "alarms")
	b.Button("Connect")
	b.See("Secret that signs")
	b.Button("I have kept it")
	shoot(b, "integrations")
	b.Button("alarms")
	heads(b, "alarms")
	b.Fill("Title", "/alert/title")
	b.Button("Try it on the last ten")
	b.See("Nothing was sent yet.")
	b.Button("Use it")
	b.See("It holds for what comes")
	shoot(b, "integration")
	b.Button("Rotate")
	b.See("New secret")

	visit(b, "/ui/settings/notifications", "Notifications")
	b.Click(`[aria-label="task done by e-mail"]`)
	b.See("Saved.")
	b.Fill("From", "22:00")
	b.Fill("To", "07:00")
	b.Button("Set")
	b.See("Set.")
	shoot(b, "notifications")
	quiet := call[struct{ Quiet *string }](y, http.MethodGet, "/v1/me/notification-preferences", "").Quiet
	if quiet == nil || !strings.HasPrefix(*quiet, "22:00-07:00 ") {
		t.Errorf("the quiet hours are %v", quiet)
	}

	// Chromium without a head has no service for messages: that alone is played.
	browser.Eval[any](b, `void (Notification.requestPermission = async () => "granted", PushManager.prototype.subscribe = async function (o) {
		if (o.applicationServerKey.length !== 65) throw new Error("no key");
		return {toJSON: () => ({endpoint: "`+receiver.URL+`/push", keys: {auth: "tBHItJI5svbpez7KI4CCXg",
			p256dh: "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM"}})};
	})`)
	b.Fill("Name of this browser", "the laptop")
	b.Button("Take messages here")
	b.See("through 127.0.0.1")
	if at := browser.Eval[string](b, `navigator.serviceWorker.getRegistrations().then(all => all[0].scope)`); at != y.URL+"/ui/a/" {
		t.Errorf("the worker is at %s", at)
	}
	b.Button("Unsubscribe")
	b.Gone("through 127.0.0.1")

	visit(b, "/ui/settings/sso", "Single sign-on")
	b.See("Register at the provider")
	b.Fill("Issuer", "nothing")
	b.Button("Turn it on")
	b.Until("the refusal", `document.querySelector("form .trouble")`)
	shoot(b, "sso")

	visit(b, "/ui/settings/schedules", "Schedules")
	b.Button("New schedule")
	b.Fill("Title", "Look at the logs")
	b.Fill("What is wanted", "Anything odd?")
	b.Button("Make it")
	b.See("Look at the logs")
	b.Button("Pause")
	b.See("paused")
	shoot(b, "schedules")

	visit(b, "/ui/settings/oss", "Open source")
	b.Fill("Where the project", "https://example.com/project")
	b.Fill("Its licence", "MIT, for everybody.")
	b.Button("Apply")
	b.See("pending")
	shoot(b, "oss")
	content(b)
}
