package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/proof/chaos"
	"yardmaster/internal/proof/patience"
)

// process is one running program of a test; its errors fail the test.
type process struct {
	t *testing.T
	*chaos.Process
}

// start runs a program. env is added to a minimal environment.
func start(t *testing.T, log string, env []string, argv ...string) *process {
	t.Helper()
	p, err := chaos.Start(log, root, env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return &process{t, p}
}

func (p *process) output() string { return p.Output() }

// kill sends SIGKILL.
func (p *process) kill() { p.Kill() }

// stop asks the process to end, as an operator would.
func (p *process) stop() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	p.goes()
}

func (p *process) ended() bool { return p.Ended() }

// goes waits until the process has ended by itself.
func (p *process) goes() {
	p.t.Helper()
	patience.Ended(p.t, "the end of the process", p.Gone())
}

// below are the processes that descend from this one.
func (p *process) below() (found []int) {
	p.t.Helper()
	for level := []int{p.PID()}; len(level) > 0; {
		var next []int
		for _, pid := range level {
			// A thread that ends meanwhile has no children any more.
			lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
			for _, list := range lists {
				text, _ := os.ReadFile(list)
				for _, word := range strings.Fields(string(text)) {
					child, err := strconv.Atoi(word)
					if err != nil {
						p.t.Fatal(err)
					}
					next = append(next, child)
				}
			}
		}
		found, level = append(found, next...), next
	}
	return found
}

// alive tells whether a process works or may work again: one that has ended and is not
// buried is not alive.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
