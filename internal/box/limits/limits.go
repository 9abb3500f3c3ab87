// Package limits limits the processes, memory, processors, open files and disk
// space that one run may take from its box. A run that exceeds a limit is ended;
// the box and its other runs go on.
//
// There are three means. A control group of version 2, where the box may make
// one (Tree), limits exactly what the kernel counts. Resource limits of each
// process (set by the sandbox) limit a single process. A watch (Watch) measures
// everything else at intervals, and all of it where there are no control groups.
// Its intervals keep its cost below a twentieth of a processor.
package limits

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits are the limits of one run. Zero means no limit.
type Limits struct {
	Processes int64 // processes and threads, including about 15 of the sandbox
	Memory    int64 // bytes, including the files in the sandbox's temporary folders
	CPU       int64 // thousandths of a processor
	OpenFiles int64 // descriptors of all its processes together, and of each process
	FileBytes int64 // bytes of one file
	Disk      int64 // bytes of its task and home folders
	Inodes    int64 // files and folders in its task and home folders and in the sandbox's temporary folders
}

// Resource is a limited resource, by the name that the operator uses.
type Resource string

// The resources.
const (
	Processes Resource = "processes"
	Memory    Resource = "memory"
	CPU       Resource = "cpu"
	OpenFiles Resource = "open-files"
	FileBytes Resource = "file"
	Disk      Resource = "disk"
	Inodes    Resource = "inodes"
)

// part describes the text form of one limit.
type part struct {
	name  Resource
	field func(*Limits) *int64
	read  func(string) (int64, error)
	show  func(int64) string
	least int64 // no run can begin with less
}

var parts = []part{
	{Memory, func(l *Limits) *int64 { return &l.Memory }, readBytes, showBytes, 64 << 20},
	{Processes, func(l *Limits) *int64 { return &l.Processes }, readCount, showCount, 32},
	{CPU, func(l *Limits) *int64 { return &l.CPU }, readShare, showShare, 50},
	{OpenFiles, func(l *Limits) *int64 { return &l.OpenFiles }, readCount, showCount, 256},
	{FileBytes, func(l *Limits) *int64 { return &l.FileBytes }, readBytes, showBytes, 1 << 20},
	{Disk, func(l *Limits) *int64 { return &l.Disk }, readBytes, showBytes, 1 << 20},
	{Inodes, func(l *Limits) *int64 { return &l.Inodes }, readCount, showCount, 100},
}

// Names lists the names that Parse accepts.
func Names() []string {
	var out []string
	for _, p := range parts {
		out = append(out, string(p.name))
	}
	return out
}

// none is the text for no limit.
const none = "none"

// Parse reads limits and applies them over others. A text looks like
// "memory=4GiB,processes=2000,cpu=1.5,disk=none". Sizes take K, M, G or T for
// powers of 1024, with or without iB or B. An error names the limit.
func Parse(text string, over Limits) (Limits, error) {
	seen := map[string]bool{}
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, ok := strings.Cut(item, "=")
		i := slices.IndexFunc(parts, func(p part) bool { return string(p.name) == name })
		switch {
		case i < 0:
			return over, fmt.Errorf("there is no limit %q; there are %s", name, strings.Join(Names(), ", "))
		case !ok || value == "":
			return over, fmt.Errorf("the limit %s has no value: write %s=VALUE, or %s=%s", name, name, name, none)
		case seen[name]:
			return over, fmt.Errorf("the limit %s is there twice", name)
		}
		seen[name] = true
		p := parts[i]
		if value == none {
			*p.field(&over) = 0
			continue
		}
		n, err := p.read(value)
		if err != nil {
			return over, fmt.Errorf("the limit %s: %w", name, err)
		}
		if n < p.least {
			return over, fmt.Errorf("the limit %s is %s; with less than %s no run can begin", name, p.show(n), p.show(p.least))
		}
		*p.field(&over) = n
	}
	return over, nil
}

// String returns all limits in the form that Parse reads.
func (l Limits) String() string {
	var out []string
	for _, p := range parts {
		value := none
		if n := *p.field(&l); n > 0 {
			value = p.show(n)
		}
		out = append(out, string(p.name)+"="+value)
	}
	return strings.Join(out, ",")
}

// of returns the limit of a resource.
func (l Limits) of(name Resource) int64 {
	i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
	return *parts[i].field(&l)
}

// units lists the units of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

func readBytes(text string) (int64, error) {
	number, factor := text, int64(1)
	for _, suffix := range []string{"iB", "B", ""} {
		for _, u := range units {
			if before, ok := strings.CutSuffix(text, u.name+suffix); ok && factor == 1 {
				number, factor = before, u.bytes
			}
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || math.IsNaN(f) || f*float64(factor) >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size such as 512MiB or 4GiB", text)
	}
	return int64(f * float64(factor)), nil
}

func readCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return n, nil
}

func readShare(text string) (int64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || math.IsNaN(f) || f > 1<<20 {
		return 0, fmt.Errorf("%q is not a number of processors such as 1.5", text)
	}
	return int64(f * 1000), nil
}

func showBytes(n int64) string {
	for _, u := range units {
		if n >= u.bytes {
			return strconv.FormatFloat(math.Floor(float64(n)/float64(u.bytes)*10)/10, 'f', -1, 64) + u.name + "iB"
		}
	}
	return strconv.FormatInt(n, 10)
}

func showCount(n int64) string { return strconv.FormatInt(n, 10) }

func showShare(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// Breach reports a limit that a run has exceeded.
type Breach struct {
	Resource Resource
	Limit    int64 // the limit; 0 if the box ran out before the run reached a limit
	Used     int64 // how much the run used
	Free     int64 // how much the box had left when it ran out
}

// nouns names what each limit counts.
var nouns = map[Resource]string{
	Processes: "processes and threads",
	Memory:    "memory",
	OpenFiles: "open files",
	Disk:      "disk",
	Inodes:    "files and folders",
}

// Error returns a sentence for the user who reads why the run failed.
func (b *Breach) Error() string {
	what, amount := nouns[b.Resource], func(n int64) string { return showCount(n) + " " + nouns[b.Resource] }
	if b.Resource == Memory || b.Resource == Disk {
		amount = func(n int64) string { return sentenceBytes(n) + " of " + what }
	}
	switch {
	case b.Resource == FileBytes:
		return fmt.Sprintf("The run wrote a file of %s, the largest size that a file may have on this box.",
			sentenceBytes(b.Limit))
	case b.Limit > 0:
		return fmt.Sprintf("The run used more than %s, which is the limit of one run on this box; it had %s when it was ended.",
			amount(b.Limit), strings.TrimSuffix(amount(b.Used), " of "+what))
	case b.Resource == Inodes:
		return fmt.Sprintf("The disk of the box was nearly out of files (%d were left), and this run used the most: %s.",
			b.Free, amount(b.Used))
	}
	return fmt.Sprintf("The %s of the box was nearly full (%s were left), and this run used the most: %s.",
		what, sentenceBytes(b.Free), sentenceBytes(b.Used))
}

// OnDisk tells whether the run's files are what exceeds the limit.
func (b *Breach) OnDisk() bool {
	return b.Resource == Disk || b.Resource == Inodes || b.Resource == FileBytes
}

// sentenceBytes formats a size with a space before its unit.
func sentenceBytes(n int64) string {
	text := showBytes(n)
	if i := strings.IndexAny(text, "KMGT"); i > 0 {
		return text[:i] + " " + text[i:]
	}
	return text + " bytes"
}
