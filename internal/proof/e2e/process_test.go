package e2e

import (
	"testing"

	"yardmaster/internal/proof/chaos"
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
	if err := p.Stop(); err != nil {
		p.t.Error(err)
	}
}

func (p *process) ended() bool { return p.Ended() }
