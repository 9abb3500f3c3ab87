package machine

import "testing"

// The demo suggests the command with which it was started.
func TestStartedAs(t *testing.T) {
	const run = "go run ./cmd/yardmaster"
	for name, want := range map[string]string{
		"/tmp/go-build2580159025/b001/exe/yardmaster":                                                                run,
		"/home/ada/.cache/go-build/0c/0cfaebb8521626e8cf4d1abdfcc9a1505d84891aeac6e3126a01b1ca59507f86-d/yardmaster": run,
		"/cache/0c/0cfaebb8521626e8cf4d1abdfcc9a1505d84891aeac6e3126a01b1ca59507f86-d/yardmaster":                    run,
		"./yardmaster": "./yardmaster", "yardmaster": "yardmaster", "/home/ada/go-build/yardmaster": "/home/ada/go-build/yardmaster",
	} {
		if got := startedAs(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
