package output

import (
	"fmt"
	"os"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// Findings are what an examination has found. For people each is printed when it is found, for
// programs all at the end.
type Findings struct {
	flags *Flags
	all   []finding
	bad   int
}

type finding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Then string `json:"then"`
}

// Find begins an examination.
func (o *Flags) Find() *Findings { return &Findings{flags: o, all: []finding{}} }

// Say adds a finding, and what to do about it where it is not well.
func (f *Findings) Say(ok bool, what, then string) {
	if ok {
		then = ""
	} else {
		f.bad++
	}
	if f.all = append(f.all, finding{ok, what, then}); f.flags.ForPrograms() {
		return
	}
	s, sign, tone := screen.Out(), "ok ", terminal.Good
	if !ok {
		sign, tone = "bad", terminal.Bad
	}
	fmt.Printf("%s  %s\n", s.Paint(tone, sign), client.Inert(what))
	if then != "" {
		fmt.Printf("     %s\n", client.Inert(then))
	}
}

// End fails if something is not well.
func (f *Findings) End() error {
	if f.flags.ForPrograms() {
		b, err := object.Encode(f.all)
		if err == nil {
			err = f.flags.Print(os.Stdout, b)
		}
		if err != nil {
			return err
		}
	}
	if f.bad > 0 {
		return fmt.Errorf("%d of these need to be seen to", f.bad)
	}
	return nil
}
