package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"

	"yardmaster/internal/client/inert"
)

// Progress says on one line what goes on and for how long, while a person waits. On what
// is no terminal it writes a line for each step.
type Progress struct {
	screen Screen
	out    io.Writer

	mu    sync.Mutex
	step  string
	part  string // how far the step is; "" if nobody says
	begun time.Time
	drawn bool
	stop  chan struct{}
	done  chan struct{}
}

// NewProgress begins to show progress; an empty step shows nothing until Step names one. Its
// caller ends it with Stop.
func (s Screen) NewProgress(out io.Writer, step string) *Progress {
	p := &Progress{screen: s, out: out, begun: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	p.Step(step)
	go p.run()
	return p
}

// Step says what goes on from now.
func (p *Progress) Step(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	step = inert.Line(step)
	if step == p.step || step == "" {
		return
	}
	p.step, p.part = step, ""
	if !p.screen.Live {
		fmt.Fprintln(p.out, step)
	}
}

// Part says how far the step is, such as 45%. Only a terminal shows it.
func (p *Progress) Part(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = inert.Line(text)
}

// line is what is drawn; "" while there is no step.
func (p *Progress) line(sign rune) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step == "" {
		return ""
	}
	text := p.step
	if p.part != "" {
		text += ": " + p.part
	}
	return fmt.Sprintf("%c %s (%s)", sign, text, span(time.Since(p.begun)))
}

const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

func (p *Progress) run() {
	defer close(p.done)
	if !p.screen.Live {
		<-p.stop
		return
	}
	tick := time.NewTicker(120 * time.Millisecond)
	defer tick.Stop()
	signs := []rune(frames)
	for n := 0; ; n++ {
		select {
		case <-p.stop:
			if p.drawn {
				fmt.Fprint(p.out, "\r\x1b[K")
			}
			return
		case <-tick.C:
			line := p.line(signs[n%len(signs)])
			if line == "" {
				continue
			}
			p.drawn = true
			fmt.Fprint(p.out, "\r"+Cut(line, p.screen.Width-1)+"\x1b[K")
		}
	}
}

// Stop ends the progress and removes its line.
func (p *Progress) Stop() {
	close(p.stop)
	<-p.done
}
