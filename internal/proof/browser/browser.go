// Package browser drives a real browser, Chromium, for tests and measurements: one browser for a
// program, and for each test a window with cookies and storage of its own. Tests fail
// where there is no Chromium.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"yardmaster/internal/proof/patience"
)

// pause lies between two tries to reach a page that is being left.
const pause = 20 * time.Millisecond

// unbounded is how long is waited for a page outside of tests.
const unbounded = 10 * time.Minute

// patient returns how long is waited for a page: as long as the test waits for anything.
func patient(t T) time.Duration {
	if t, ok := t.(testing.TB); ok {
		return patience.Of(t)
	}
	return unbounded
}

var one struct {
	sync.Mutex
	ctx  context.Context
	stop context.CancelFunc
}

// Close ends the browser, at the end of a test program.
func Close() {
	one.Lock()
	defer one.Unlock()
	if one.stop != nil {
		one.stop()
	}
	one.ctx, one.stop = nil, nil
}

// start returns the context of the browser, which it starts at the first call.
func start(patience time.Duration) (context.Context, error) {
	one.Lock()
	defer one.Unlock()
	if one.ctx != nil {
		return one.ctx, nil
	}
	at := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			at = found
			break
		}
	}
	if at == "" {
		return nil, fmt.Errorf("there is no Chromium on this machine: make deps gets it")
	}
	// A sandbox of the browser needs namespaces that containers often lack, and the
	// pages are our own.
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(at), chromedp.NoSandbox, chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-gpu", true),
		chromedp.WSURLReadTimeout(patience))...)
	ctx, stop := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx); err != nil {
		stop()
		stopAlloc()
		return nil, fmt.Errorf("start %s: %w", at, err)
	}
	one.ctx, one.stop = ctx, func() { stop(); stopAlloc() }
	return ctx, nil
}

// T is what a tab needs of the test it serves. Fatal and Fatalf do not return.
type T interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Tab is a page of a window.
type Tab struct {
	T    T
	Base string // address of the server, without a slash at its end

	ctx context.Context
	mu  sync.Mutex
	bad []string // what the browser complained of
}

// Open opens a window of its own on a server, whose name may end in ".test" for this machine, of a width and height in pixels.
func Open(t T, base string, width, height int64) *Tab {
	t.Helper()
	root, err := start(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(root, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	return tab(t, ctx, base, width, height)
}

// Another opens a second tab in the window of the first.
func (b *Tab) Another() *Tab {
	b.T.Helper()
	ctx, stop := chromedp.NewContext(b.ctx)
	b.T.Cleanup(stop)
	return tab(b.T, ctx, b.Base, 1440, 900)
}

func tab(t T, ctx context.Context, base string, width, height int64) *Tab {
	t.Helper()
	b := &Tab{T: t, Base: base, ctx: ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" {
				b.mu.Lock()
				b.bad = append(b.bad, strings.TrimSpace(m.String()+" "+m.URL))
				b.mu.Unlock()
			}
		}
	}()
	b.do("resize", chromedp.EmulateViewport(width, height))
	return b
}

// do runs an action.
func (b *Tab) do(what string, a chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patient(b.T))
	defer cancel()
	if err := chromedp.Do(ctx, a); err != nil {
		b.T.Fatalf("%s: %v\n%s", what, err, b.seen())
	}
}

// Resize gives the window a width and height in pixels.
func (b *Tab) Resize(width, height int64) {
	b.T.Helper()
	b.do("resize", chromedp.EmulateViewport(width, height))
}

// Before has each page that is loaded from now on run a script ahead of its own.
func (b *Tab) Before(script string) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patient(b.T))
	defer cancel()
	ask := page.AddScriptToEvaluateOnNewDocumentParams{Source: script}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, ask); err != nil {
		b.T.Fatalf("run a script before a page: %v", err)
	}
}

// Go loads an address of the server.
func (b *Tab) Go(path string) {
	b.T.Helper()
	b.do("go to "+path, chromedp.Navigate(b.Base+path))
}

// Eval evaluates an expression of JavaScript. Its value comes as JSON comes.
func Eval[R any](b *Tab, script string) (out R) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patient(b.T))
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[R](script, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	if err != nil {
		b.T.Fatalf("%s: %v", script, err)
	}
	return out
}

// watch is a promise of whether an expression becomes true within a second. The page looks
// when it has changed, and now and then for what is no change of its elements.
const watch = `new Promise(done => {
	const is = () => { try { return Boolean(%s) } catch { return false } };
	if (is()) return done(true);
	let soon;
	const end = now => { look.disconnect(); clearTimeout(soon); clearInterval(often); clearTimeout(late); done(now) };
	const look = new MutationObserver(() => { soon ??= setTimeout(() => { soon = undefined; if (is()) end(true) }, 20) });
	look.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
	const often = setInterval(() => { if (is()) end(true) }, 100);
	const late = setTimeout(() => end(is()), 1000);
})`

// Back goes to the page before, as the browser's own button does: it does not wait for it.
func (b *Tab) Back() {
	b.T.Helper()
	Eval[any](b, "(setTimeout(() => history.back()), null)") // an evaluation must not take its own page away
}

// Until waits until an expression is true.
func (b *Tab) Until(what, script string) {
	b.T.Helper()
	watched := fmt.Sprintf(watch, script)
	ctx, cancel := context.WithTimeout(b.ctx, patient(b.T))
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		// A page that is being left cannot be asked; the next one can.
		if is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](watched, chromedp.EvalAwaitPromise)); err == nil && is {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.T.Fatalf("it never came to pass: %s\n%s", what, b.seen())
		}
	}
}

// See waits until the page shows a text.
func (b *Tab) See(text string) {
	b.T.Helper()
	b.Until("see "+text, "document.body && document.body.innerText.includes("+quote(text)+")")
}

// Gone waits until the page does not show a text any more.
func (b *Tab) Gone(text string) {
	b.T.Helper()
	b.Until("no more "+text, "document.body && !document.body.innerText.includes("+quote(text)+")")
}

// Click clicks on what a selector of CSS names, once it is there and can be used.
func (b *Tab) Click(selector string) {
	b.T.Helper()
	b.Until(selector+" can be used", "(e => e && !e.disabled && e.getClientRects().length)(document.querySelector("+quote(selector)+"))")
	Eval[any](b, "document.querySelector("+quote(selector)+").click()")
}

// Yes answers the question that lies over the page with what it offers to do.
func (b *Tab) Yes() {
	b.T.Helper()
	b.Click("dialog.brief[open] .acts button:last-child")
}

// Button clicks on the first button or link of a name; that of a tab may begin with a capital.
func (b *Tab) Button(name string) {
	b.T.Helper()
	find := `[...document.querySelectorAll("button,a,summary")].find(e => !e.disabled && e.getClientRects().length && ` +
		`(n => n === ` + quote(name) + ` || e.matches(".tabs button") && n.replace(/^./, c => c.toLowerCase()) === ` + quote(name) + `)(
		(e.getAttribute("aria-label") ?? e.innerText).trim()))`
	b.Until("a button "+name, find)
	Eval[any](b, find+".click()")
}

// Fill puts a text into the field of a label.
func (b *Tab) Fill(label, text string) {
	b.T.Helper()
	find := `[...document.querySelectorAll("label")].filter(l => l.getClientRects().length && l.innerText.trim().startsWith(` + quote(label) +
		`)).map(l => l.control ?? l.querySelector("input,textarea,select")).find(Boolean)`
	b.Until("a field "+label, find)
	Eval[any](b, "("+find+").focus()")
	if text != "" {
		Eval[any](b, "("+find+").select?.()")
		b.do("type", chromedp.KeyEvent(text))
	}
}

// Choose picks a value in the first select of a name.
func (b *Tab) Choose(name, value string) {
	b.T.Helper()
	find := `document.querySelector(` + quote("main select[name="+name+"], dialog select[name="+name+"]") + `)`
	b.Until("a choice of "+name, find)
	Eval[any](b, `(s => { s.value = `+quote(value)+`; s.dispatchEvent(new Event("change", {bubbles: true})) })(`+find+`)`)
}

// Named keys for Press.
var named = map[string]string{
	"Enter": kb.Enter, "Tab": kb.Tab, "Escape": kb.Escape, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp, "Backspace": kb.Backspace,
	"ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"PageDown": kb.PageDown, "PageUp": kb.PageUp, "Home": kb.Home, "End": kb.End, "Space": " ", "Delete": kb.Delete,
}

// Press presses keys, one after the other: "g", "t", "Enter", "Ctrl+k", "Shift+Tab".
func (b *Tab) Press(keys ...string) {
	b.T.Helper()
	for _, k := range keys {
		var mods []chromedp.KeyOption
		for {
			mod, rest, ok := strings.Cut(k, "+")
			if !ok || rest == "" {
				break
			}
			mods = append(mods, chromedp.KeyModifiers(map[string]chromedp.Modifier{
				"Ctrl": kb.ModifierCtrl, "Shift": kb.ModifierShift, "Alt": kb.ModifierAlt,
			}[mod]))
			k = rest
		}
		if code, ok := named[k]; ok {
			k = code
		}
		b.do("press "+k, key(k, mods...))
	}
}

// key presses keys as a keyboard does: a character is typed only if nothing has prevented
// that when the key went down, and never with Ctrl or Alt.
func key(keys string, opts ...chromedp.KeyOption) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, r := range keys {
			all := kb.Encode(r)
			down, text := all[0], ""
			for _, e := range all {
				for _, o := range opts {
					o(e)
				}
				if e.Type == input.DispatchKeyEventTypeChar {
					text = e.Text
				}
			}
			if down.Modifiers&^int64(kb.ModifierShift) == 0 && text != "" {
				down.Type, down.Text = input.DispatchKeyEventTypeKeyDown, text
			}
			for _, e := range all {
				if e.Type == input.DispatchKeyEventTypeChar {
					continue
				}
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Type types a text where the focus is.
func (b *Tab) Type(text string) {
	b.T.Helper()
	b.do("type", chromedp.KeyEvent(text))
}

// SignIn signs a person in with a password, and waits for the dashboard.
func (b *Tab) SignIn(email, password string) {
	b.T.Helper()
	b.Go("/login?return_to=/ui/")
	b.Fill("Login or e-mail", email)
	b.Fill("Password", password)
	b.Press("Enter")
	b.Until("the dashboard", `document.querySelector("#app main h1")`)
}

// Theme has the pages think that the system is "light" or "dark".
func (b *Tab) Theme(name string) {
	b.T.Helper()
	Eval[any](b, "document.documentElement.dataset.theme = "+quote(name))
}

// Complaints returns what the browser complained of since the last call: errors and
// warnings of its console, violations of the policy, exceptions.
func (b *Tab) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	bad := b.bad
	b.bad = nil
	return bad
}

// Heard waits until the browser complains with a text.
func (b *Tab) Heard(text string) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patient(b.T))
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		b.mu.Lock()
		heard := strings.Contains(strings.Join(b.bad, "\n"), text)
		b.mu.Unlock()
		if heard {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.T.Fatalf("the browser does not complain of %s: %q", text, b.Complaints())
		}
	}
}

// Heap returns how many bytes the scripts of the page hold, after what they let go was
// collected.
func (b *Tab) Heap() float64 {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patient(b.T))
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		b.T.Fatalf("collect garbage: %v", err)
	}
	use, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		b.T.Fatalf("ask for the heap: %v", err)
	}
	return use.UsedSize
}

// Picture writes what the window shows as a PNG.
func (b *Tab) Picture(at string) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patient(b.T))
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(filepath.Dir(at), 0o755)
	}
	if err == nil {
		err = os.WriteFile(at, png, 0o644)
	}
	if err != nil {
		b.T.Fatal(err)
	}
}

// seen is what the page says, for the report of a failure.
func (b *Tab) seen() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body?.innerText ?? "")`))
	return fmt.Sprintf("the page says:\n%.3000s\nthe browser says: %q", text, b.Complaints())
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string is JSON
	}
	return string(text)
}
