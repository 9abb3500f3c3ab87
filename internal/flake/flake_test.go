package flake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
)

// runner is where GitHub keeps checkouts.
const runner = "/home/runner/" + "work/"

const actions = "2026-05-04T10:11:12.1234567Z "

// inActions is a log as GitHub Actions keeps it: times, colours, groups and what other
// steps wrote.
func inActions(lines ...string) string {
	all := append([]string{"##[group]Run actions/checkout@v4", "##[endgroup]", "fatal: another step", "##[group]Run make test",
		"make test || echo error", "shell: /usr/bin/bash -e {0}", "##[endgroup]"}, lines...)
	all = append(all, "##[error]Process completed with exit code 1.", "##[group]Run post", "error: of a later step")
	return actions + strings.Join(all, "\n"+actions)
}

var logs = []struct {
	name, job, step, log string
	test, message, scope string
	class                Class
	touched, left        []string // paths that the print is touched by, and not
}{{
	name: "go", job: "test (ubuntu, 1.26)", step: "Run go test ./...",
	log: "ok  \tshop/internal/db\t0.1s\n--- FAIL: TestLease (2.01s)\n    store_test.go:88: lease expired after 2.013s, want > 5s\n" +
		"FAIL\nFAIL\tshop/internal/store\t2.030s\nFAIL",
	test: "shop/internal/store TestLease", message: "store_test.go:<n>: lease expired after <d>, want > <d>", scope: "test", class: ClassTest,
	touched: []string{"internal/store/store_test.go"}, left: []string{"internal/db/store_test.go", "store.go"},
}, {
	name: "pytest", job: "py", step: "Run pytest",
	log: "=== FAILURES ===\n____ test_other ____\nE   ValueError: no\n____ test_list[eu] ____\n\n    def test_list():\n" +
		">       assert r.status == 200\nE   AssertionError: assert 503 == 200\nE    +  where 503\n\n" +
		"=== short test summary info ===\nFAILED tests/test_api.py::test_list[eu] - Asser...\n=== 1 failed in 2.1s ===",
	test: "tests/test_api.py::test_list[eu]", message: "E AssertionError: assert <n> == <n>", scope: "py", class: ClassTest,
	touched: []string{"tests/test_api.py", "web/tests/test_api.py"}, left: []string{"other_tests/test_api.py"},
}, {
	name: "pytest, shortened", job: "py",
	log:  "E   AssertionError: assert 503 == 200\nFAILED tests/test_api.py::test_list[eu] - Asser...",
	test: "tests/test_api.py::test_list[eu]", message: "E AssertionError: assert <n> == <n>", scope: "py", class: ClassTest,
}, {
	name: "jest", job: "web", step: "Run npm test",
	log: "FAIL src/cart.test.js (6.1 s)\n  ● Console\n\n    console.log\n\n  ● cart › adds two\n\n" +
		"    thrown: \"Exceeded timeout of 5000 ms for a test.\n    Use jest.setTimeout\n\nSummary of all failing tests\nFAIL src/cart.test.js\n" +
		"  ● cart › adds two\n\n    thrown: again",
	test: "src/cart.test.js cart › adds two", message: `thrown: "Exceeded timeout of <d> for a test.`, scope: "web", class: ClassTest,
	touched: []string{"src/cart.test.js"}, left: []string{"src/cart.js"},
}, {
	name: "cargo", job: "cargo (stable)", step: "Run cargo test",
	log: "     Running unittests src/lib.rs (target/debug/deps/shop-0a1b2c3d4e5f6071)\n\nrunning 2 tests\ntest net::tests::ok ... ok\n" +
		"test net::tests::binds ... FAILED\n\nfailures:\n\n---- net::tests::binds stdout ----\n\n" +
		"thread 'net::tests::binds' panicked at src/net.rs:12:5:\nassertion `left == right` failed: port 127.0.0.1:41873 in use\n  left: 1\n",
	test: "shop net::tests::binds", message: "assertion `left == right` failed: port <ip> in use", scope: "cargo", class: ClassTest,
	touched: []string{"src/net.rs"}, left: []string{"src/lib.rs"},
}, {
	name: "gradle", job: "jvm", step: "Run ./gradlew test",
	log: "> Task :test FAILED\n\nOrderTest > totals() FAILED\n    org.opentest4j.AssertionFailedError: expected: <3> but was: <2>\n" +
		"        at app//OrderTest.totals(OrderTest.java:12)",
	test: "OrderTest > totals()", message: "org.opentest4j.AssertionFailedError: expected: <<n>> but was: <<n>>", scope: "jvm", class: ClassTest,
	touched: []string{"src/test/java/shop/OrderTest.java"}, left: []string{"src/main/java/shop/Order.java"},
}, {
	name: "playwright", job: "e2e (chromium, 1/4)", step: "Run npx playwright test",
	log: "  1) [chromium] › login.spec.ts:12:5 › signs in ─────────\n\n    Error: Timed out 5000ms waiting for expect(locator).toBeVisible()\n\n" +
		"    Retry #1 ───",
	test: "[chromium] › login.spec.ts › signs in", message: "Error: Timed out <d> waiting for expect(locator).toBeVisible()", scope: "e2e",
	class: ClassTest, touched: []string{"e2e/login.spec.ts"}, left: []string{"e2e/logout.spec.ts"},
}, {
	name: "a build", job: "build (ubuntu, 1.26)", step: "Run go build",
	log:     "0 errors so far\n# shop/internal/db\n" + runner + "shop/shop/internal/db/pool.go:41:2: undefined: newPool",
	message: "internal/db/pool.go:<n>:<n>: undefined: newPool", scope: "build (ubuntu, 1.26) / Run go build", class: ClassBuild,
	touched: []string{"internal/db/pool.go"}, left: []string{"pool/pool.go"},
}, {
	name: "a full disk", job: "build", step: "Run make",
	log:     "tar: error writing\ntar: x: No space left on device",
	message: "tar: x: No space left on device", scope: "build / Run make", class: ClassInfra,
}, {
	name: "a mirror", job: "build", step: "Run apt",
	log:     "E: Failed to fetch https://deb.example.org/pool/a.deb  503  Service Unavailable [IP: 1.2.3.4 80]",
	message: "E: Failed to fetch https://deb.example.org/pool/a.deb <n> Service Unavailable [IP: <n>.<n>.<n>.<n> <n>]",
	scope:   "build / Run apt", class: ClassInfra,
}}

func TestLogs(t *testing.T) {
	t.Parallel()
	for _, c := range logs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bare := Read(Job{Repo: "r", Name: c.job, Step: c.step, Log: c.log})
			dressed := Read(Job{Repo: "r", Name: c.job, Step: c.step, Log: inActions(strings.Split("\x1b[31m"+c.log+"\x1b[0m", "\n")...)})
			if d := cmp.Diff(bare, dressed); d != "" {
				t.Errorf("the dress of Actions changes the failure: %s", d)
			}
			if len(bare.Prints) != 1 {
				t.Fatalf("%d fingerprints: %+v", len(bare.Prints), bare.Prints)
			}
			p := bare.Prints[0]
			got := []string{p.Test, p.Error, p.Scope, string(bare.Class)}
			if d := cmp.Diff([]string{c.test, c.message, c.scope, string(c.class)}, got); d != "" {
				t.Error(d)
			}
			for _, path := range c.touched {
				if !p.touches([]string{"README", path}) {
					t.Errorf("%s does not touch %q", path, p.Files)
				}
			}
			for _, path := range c.left {
				if p.touches([]string{path}) {
					t.Errorf("%s touches %q", path, p.Files)
				}
			}
		})
	}
}

// Only the number differs, so both share one fingerprint: a re-run tells them apart.
func TestNumbersAreOneFingerprint(t *testing.T) {
	t.Parallel()
	read := func(expected, was int) string {
		return Read(Job{Repo: "r", Name: "jvm", Log: fmt.Sprintf("OrderTest > totals() FAILED\n    org.opentest4j.AssertionFailedError: "+
			"expected: <%d> but was: <%d>", expected, was)}).Prints[0].FP
	}
	if read(3, 2) != read(5, 7) {
		t.Error("two numbers are two fingerprints")
	}
}

// A fingerprint is of one repository. With a test, it is of all steps and all of a matrix.
func TestScope(t *testing.T) {
	t.Parallel()
	fp := func(repo, job, step, log string) string {
		return Read(Job{Repo: repo, Name: job, Step: step, Log: log}).Prints[0].FP
	}
	test, build := logs[0].log, logs[7].log
	if fp("a", "test (1)", "x", test) != fp("a", "test (2)", "y", test) || fp("a", "test", "x", test) == fp("b", "test", "x", test) ||
		fp("a", "test", "x", test) == fp("a", "unit", "x", test) {
		t.Error("of a test")
	}
	if fp("a", "b (1)", "x", build) == fp("a", "b (2)", "x", build) || fp("a", "b", "x", build) == fp("a", "b", "y", build) {
		t.Error("of a build")
	}
}

func TestConclusions(t *testing.T) {
	t.Parallel()
	seven := 7
	for _, c := range []struct {
		job  Job
		want string
	}{
		{Job{End: codehost.EndTimedOut, Log: logs[0].log}, "<timeout>"},
		{Job{End: codehost.EndCancelled, Log: logs[0].log}, "<cancelled>"},
		{Job{Log: "nothing\nof note", ExitCode: &seven}, "<exit7>"},
		{Job{Log: "checked: 0 errors\nFatal: it fell over"}, "Fatal: it fell over"},
		{Job{Log: ""}, ""},
	} {
		if got := Read(c.job); len(got.Prints) != 1 || got.Prints[0].Error != c.want || got.Prints[0].Test != "" {
			t.Errorf("%+v: %+v", c.job, got.Prints)
		}
	}
}

// Verbose output has the message before the result, and parents repeat their subtests.
func TestGoVerbose(t *testing.T) {
	t.Parallel()
	f := Read(Job{Log: "=== RUN   TestA\n=== RUN   TestA/x\n    a_test.go:3: got 4\n=== RUN   TestB\n    b_test.go:9: fine\n--- FAIL: TestA (0.00s)\n" +
		"    --- FAIL: TestA/x (0.00s)\n--- PASS: TestB (0.00s)\nFAIL\nexit status 1\nFAIL\tshop/a\t0.01s\n"})
	if len(f.Prints) != 1 || f.Prints[0].Test != "shop/a TestA/x" || f.Prints[0].Error != "a_test.go:<n>: got <n>" {
		t.Errorf("%+v", f.Prints)
	}
	f = Read(Job{Log: "--- FAIL: TestA (0.00s)\npanic: runtime error: index out of range [3] with length 2 [recovered]\n\ngoroutine 7 [running]:\n" +
		"FAIL\tshop/a\t0.01s\n"})
	if len(f.Prints) != 1 || f.Prints[0].Error != "panic: runtime error: index out of range [<n>] with length <n> [recovered]" {
		t.Errorf("%+v", f.Prints)
	}
}

func TestMany(t *testing.T) {
	t.Parallel()
	log := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "--- FAIL: TestN%d (0.00s)\n    x_test.go:1: no\n", i)
		}
		return b.String() + "FAIL\tshop\t1s\n"
	}
	if f := Read(Job{Name: "t", Log: log(MaxPrints)}); len(f.Prints) != MaxPrints || many(&f) {
		t.Errorf("%d fingerprints of %d tests", len(f.Prints), MaxPrints)
	}
	if f := Read(Job{Name: "t", Log: log(MaxPrints + 1)}); len(f.Prints) != 1 || !many(&f) {
		t.Errorf("%d fingerprints of %d tests", len(f.Prints), MaxPrints+1)
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	f := Read(Job{Log: logs[0].log, JUnit: [][]byte{[]byte(`<testsuites><testsuite><testcase classname="shop.Cart" name="adds" file="cart.py">
		<failure message="">
		assert 3 == 4 after 12 ms</failure></testcase><testcase name="fine"/>
		<testcase classname="shop.Cart" name="takes"><error message="boom at 0xdeadbeef"/></testcase></testsuite>`), []byte("no xml <")}})
	got := map[string]string{}
	for _, p := range f.Prints {
		got[p.Test] = p.Error
	}
	if d := cmp.Diff(map[string]string{"shop.Cart adds": "assert <n> == <n> after <d>", "shop.Cart takes": "boom at <x>"}, got); d != "" {
		t.Error(d)
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		runner + "x/x/a/b.go:1":                  "a/b.go:<n>",
		"/__w/x/x/a.go":                          "a.go",
		"/builds/g/p/a.go":                       "a.go",
		"open /tmp/TestX123/001/f: no such file": "open <tmp>: no such file",
		"at 2026-05-04T10:11:12.5Z and 2026-05-04 10:11:12+02:00": "at <t> and <t>",
		"id 0199d3a4-5b6c-7d8e-9f01-23456789abcd":                 "id <id>",
		"ptr 0xc000123 sha 3f8a1c5e word deadbeef count 12345678": "ptr <x> sha <x> word deadbeef count <n>",
		"dial 10.0.0.1:5432 and localhost:8080":                   "dial <ip> and localhost:<n>",
		"took 1m2.5s, 300ms, 4 seconds, 5000 ms, 2h":              "took <d>, <d>, <d>, <d>, <d>",
		"error[E0425]: opentest4j x86_64 v1.2":                    "error[E0425]: opentest4j x86_<n> v1.<n>",
		"  blanks \t to   one ":                                   "blanks to one",
		strings.Repeat("é", 400):                                  strings.Repeat("é", 150),
		`D:\a\shop\shop\src\a.cs(3,4): error CS0103: no`:          `src\a.cs(<n>,<n>): error CS0103: no`,
	} {
		if got := Equal(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"t.py::test[10.0.0.1:80]": "t.py::test[<ip>]", "t.py::test[0199d3a4-5b6c-7d8e-9f01-23456789abcd]": "t.py::test[<id>]",
		"login.spec.ts:12:5 › x": "login.spec.ts › x", "t.py::test[eu-3]": "t.py::test[eu-3]",
	} {
		if got := testID(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
