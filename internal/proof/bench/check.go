package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
)

// missedText are the targets that are known to be missed, a line each: section, tab, row,
// tab, what is to be done. The list only becomes shorter.
//
//go:embed missed.tsv
var missedText string

// tries is how often a section is measured before -check believes that it misses a target:
// a machine that others use now and then is no news.
const tries = 3

// known reads missedText.
func known(text string) (map[string]bool, error) {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("missed.tsv: %q has not three fields", line)
		}
		out[fields[0]+"\t"+fields[1]] = true
	}
	return out, nil
}

// check measures again the sections that miss a target which is not known to be missed. It
// fails if one is missed each time, with the profile of what missed, and names the ones that
// need not be on the list.
func (b *bench) check(ctx context.Context) error {
	list, err := known(missedText)
	if err != nil {
		return err
	}
	met, late := map[string]bool{}, map[string]string{} // by section and row
	look := func(rows []row) (again map[string]bool) {
		again = map[string]bool{}
		for _, r := range rows {
			key := r.section + "\t" + r.what
			switch {
			case r.target == "":
			case r.met:
				met[key] = true
				delete(late, key)
			case !met[key]:
				late[key] = r.line()
				again[r.section] = again[r.section] || !list[key]
			}
		}
		return again
	}
	again := look(b.rows)
	for range tries - 1 {
		var rows []row
		for _, s := range sections {
			if !again[s.name] {
				continue
			}
			fmt.Printf("\n%s once more\n", s.name)
			first := len(b.rows)
			if err := b.again(ctx, s); err != nil {
				return err
			}
			for i := first; i < len(b.rows); i++ {
				b.rows[i].section = s.name
				fmt.Println(b.rows[i].line())
			}
			rows = append(rows, b.rows[first:]...)
		}
		again = look(rows)
	}
	for _, s := range sections {
		if again[s.name] {
			if err := b.explain(ctx, s); err != nil {
				return err
			}
		}
	}
	failed := 0
	for key, line := range late {
		if list[key] {
			fmt.Printf("known  %s\n", line)
			continue
		}
		failed++
		fmt.Printf("FAIL   %s\n", line)
	}
	for key := range list {
		if met[key] {
			fmt.Printf("is met: take it from missed.tsv if it stays so: %s\n", key)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d targets were missed %d times in a row", failed, tries)
	}
	return nil
}

// again measures a section once more, in a folder of its own: the servers of the run before
// are set up in theirs.
func (b *bench) again(ctx context.Context, s section) (err error) {
	was := b.dir
	if b.dir, err = os.MkdirTemp(was, "again-"); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(b.dir))
		b.dir = was
	}()
	if err := s.run(ctx, b); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}
