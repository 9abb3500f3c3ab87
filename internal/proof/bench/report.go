package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is one measured figure.
type row struct {
	section  string
	what     string
	value    string  // of the program
	baseline string  // of the baseline, in the same run; empty: none
	ratio    float64 // 0: not meaningful
	target   string  // empty: for information only
	met      bool
}

func (r row) cells() []string {
	ratio, verdict := "", ""
	if r.ratio != 0 {
		ratio = fmt.Sprintf("%.2f", r.ratio)
	}
	if r.target != "" {
		if verdict = "**missed**"; r.met {
			verdict = "met"
		}
	}
	return []string{r.what, r.value, r.baseline, ratio, r.target, verdict}
}

func (r row) line() string {
	c := r.cells()
	return fmt.Sprintf("  %-58s %16s  baseline %-16s ratio %-7s %-26s %s", c[0], c[1], c[2], c[3], c[4], strings.Trim(c[5], "*"))
}

func (b *bench) add(r row) { b.rows = append(b.rows, r) }

func verdict(rows []row) string {
	met, all := 0, 0
	for _, r := range rows {
		if r.target != "" {
			all++
			if r.met {
				met++
			}
		}
	}
	return fmt.Sprintf("%d of %d targets met", met, all)
}

// pages are the documents of a run, by their files. The first says how it was measured.
func pages(rows []row, took time.Duration, loadBefore string) map[string][]byte {
	out := map[string][]byte{}
	file, p := "", &strings.Builder{}
	for _, s := range sections {
		for i, d := range documents {
			if d.first != s.name {
				continue
			}
			out[file] = []byte(p.String())
			file, p = d.file, &strings.Builder{}
			fmt.Fprintf(p, "# %s\n\n", d.title)
			if i > 0 {
				p.WriteString("Of the run that [benchmarks](benchmarks.md) describes.\n")
				continue
			}
			fmt.Fprintf(p, howMeasured, runtime.NumCPU(), processor(), memory(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
				loadBefore, verdict(rows), took.Seconds())
		}
		fmt.Fprintf(p, "\n## %s%s\n\n%s\n\n", strings.ToUpper(s.name[:1]), s.name[1:], s.about)
		p.WriteString("| what | measured | baseline | ratio | target | |\n| --- | ---: | ---: | ---: | --- | --- |\n")
		for _, r := range rows {
			if r.section == s.name {
				p.WriteString("| " + strings.Join(r.cells(), " | ") + " |\n")
			}
		}
	}
	out[file] = []byte(p.String())
	delete(out, "")
	return out
}

// howMeasured says how the run was made.
const howMeasured = "Written by `go run ./internal/proof/bench -write` (`make bench` prints the same). Every figure stands beside a " +
	"baseline that was\nmeasured in the same run, the two taking turns: read the ratios, which travel between machines better " +
	"than the figures.\nThe figures go on for [connections and calls](benchmarks-calls.md), and for [other systems and " +
	"people](benchmarks-systems.md).\n\n" +
	"Measured on %d cores (%s), %d GB of memory, %s, %s/%s, SQLite and NATS embedded. The load, the program and the baselines\n" +
	"share these cores, so that a rate is not what the program could do with the machine to itself. While the run began, the\n" +
	"machine had %s processes ready to run besides; the more there were, the slower both sides.\n%s; the run took %.0f s.\n"

func processor() string {
	return field("/proc/cpuinfo", "model name", "unknown")
}

// loadAverage is the kernel's load average of the last minute.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "an unknown number of"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

func memory() int {
	var kb int
	_, _ = fmt.Sscan(field("/proc/meminfo", "MemTotal", "0"), &kb) // 0 without such a file
	return kb >> 20
}

// field reads a "name: value" line of a file of the kernel.
func field(path, name, otherwise string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return otherwise
}

// percentile sorts d; p is between 0 and 100.
func percentile(d []time.Duration, p float64) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, int(float64(len(d))*p/100))]
}

func median[T int64 | float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }
func us(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/1e3) }

func rate(perSecond float64) string { return fmt.Sprintf("%.0f/s", perSecond) }

func ratio[T int64 | float64 | time.Duration](a, b T) float64 { return float64(a) / float64(b) }
