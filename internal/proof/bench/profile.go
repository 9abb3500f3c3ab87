package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// longest is how many functions of a profile are printed.
const longest = 10

// profiles are those that the kernel's perf takes while a section is measured, of the
// processes of the program and of this one, in which some sections run what they measure.
type profiles struct {
	folder string
	taken  []*exec.Cmd // the first is of this process
}

// file is where the profile of a number is.
func (p *profiles) file(i int) string { return filepath.Join(p.folder, strconv.Itoa(i)) }

// follow takes the profile of a process until it ends.
func (p *profiles) follow(ctx context.Context, pid int) error {
	c := exec.CommandContext(ctx, "perf", "record", "-q", "-F", "199", "-p", strconv.Itoa(pid), "-o", p.file(len(p.taken)))
	if err := c.Start(); err != nil {
		return err
	}
	p.taken = append(p.taken, c)
	return nil
}

// end waits for all profiles. Those of servers end with them.
func (p *profiles) end() {
	for i, c := range p.taken {
		if i == 0 {
			_ = c.Process.Signal(os.Interrupt) // it may be over: then there is nothing to end
		}
		_ = c.Wait() // perf answers a signal with a failure
	}
}

// fullest is the profile of the server that did most; that of this process if there was none.
func (p *profiles) fullest() string {
	best, most := p.file(0), int64(0)
	for i := range p.taken {
		if s, err := os.Stat(p.file(i)); err == nil && i > 0 && s.Size() > most {
			best, most = p.file(i), s.Size()
		}
	}
	return best
}

// explain measures a section that misses a target once more, and prints in which functions
// the time of the processor went. What it measures does not count, because perf takes its
// part.
func (b *bench) explain(ctx context.Context, s section) (err error) {
	p := &profiles{}
	if p.folder, err = os.MkdirTemp(b.dir, "profile-"); err != nil {
		return err
	}
	defer os.RemoveAll(p.folder)
	if err := p.follow(ctx, os.Getpid()); err != nil {
		fmt.Printf("no profile of %s: %v\n", s.name, err)
		return nil
	}
	rows := len(b.rows)
	b.profiles = p
	err = b.again(ctx, s)
	b.profiles, b.rows = nil, b.rows[:rows]
	p.end()
	if err != nil {
		return err
	}
	report, err := exec.CommandContext(ctx, "perf", "report", "--stdio", "--no-children", "--sort", "symbol", "-i", p.fullest()).Output()
	if err != nil {
		fmt.Printf("no profile of %s: %v\n", s.name, err)
		return nil
	}
	fmt.Printf("where the processor's time goes in %s:\n%s", s.name, head(string(report)))
	return nil
}

// head are the first functions of a report of perf, a line each.
func head(report string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(report) {
		if line = strings.Trim(line, " -\n"); line == "" || line[0] == '#' {
			continue
		}
		if n++; n > longest {
			break
		}
		b.WriteString("  " + line[:min(len(line), 130)] + "\n")
	}
	return b.String()
}
