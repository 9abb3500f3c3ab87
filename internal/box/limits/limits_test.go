package limits

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	base := Limits{Processes: 2048, Memory: 1 << 30, OpenFiles: 1000, FileBytes: 5 << 30, Disk: 20 << 30, Inodes: 1 << 20}
	for _, c := range []struct {
		text string
		want func(*Limits)
		err  string
	}{
		{"", func(*Limits) {}, ""},
		{"memory=4GiB,processes=2000,cpu=1.5", func(l *Limits) { l.Memory, l.Processes, l.CPU = 4<<30, 2000, 1500 }, ""},
		{"memory=1.5G disk=512MB,file=3KiB, inodes=none", func(l *Limits) {
			l.Memory, l.Disk, l.FileBytes, l.Inodes = 3<<29, 512<<20, 3<<10,
				0
		}, "the limit file is 3KiB; with less than 1MiB no run can begin"},
		{"memory=1.5G disk=512MB,file=3MiB, inodes=none", func(l *Limits) {
			l.Memory, l.Disk, l.FileBytes, l.Inodes = 3<<29, 512<<20, 3<<20,
				0
		}, ""},
		{"disk=2T,open-files=70000", func(l *Limits) { l.Disk, l.OpenFiles = 2<<40, 70000 }, ""},
		{"disc=3", nil, `there is no limit "disc"; there are memory, processes, cpu, open-files, file, disk, inodes`},
		{"memory", nil, "the limit memory has no value: write memory=VALUE, or memory=none"},
		{"memory=", nil, "the limit memory has no value: write memory=VALUE, or memory=none"},
		{"memory=4GiX", nil, `the limit memory: "4GiX" is not a size such as 512MiB or 4GiB`},
		{"memory=-4G", nil, `the limit memory: "-4G" is not a size such as 512MiB or 4GiB`},
		{"memory=9999999999G", nil, `the limit memory: "9999999999G" is not a size such as 512MiB or 4GiB`},
		{"processes=many", nil, `the limit processes: "many" is not a whole number`},
		{"cpu=fast", nil, `the limit cpu: "fast" is not a number of processors such as 1.5`},
		{"cpu=NaN", nil, `the limit cpu: "NaN" is not a number of processors such as 1.5`},
		{"memory=1M", nil, "the limit memory is 1MiB; with less than 64MiB no run can begin"},
		{"disk=1G,disk=2G", nil, "the limit disk is there twice"},
	} {
		got, err := Parse(c.text, base)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: %v, want %s", c.text, err, c.err)
			}
			continue
		}
		want := base
		c.want(&want)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", c.text, got, err, want)
		}
		if again, err := Parse(got.String(), Limits{}); err != nil || again != got {
			t.Errorf("%q is written as %s, which reads as %+v, %v", c.text, got, again, err)
		}
	}
}

func TestDefaultFitsTheMachine(t *testing.T) {
	total := totalMemory()
	for slots := range 40 {
		l := Default(slots, t.TempDir())
		if _, err := Parse(l.String(), Limits{}); err != nil {
			t.Errorf("%d slots: %s: %v", slots, l, err)
		}
		if l.Memory > total*9/10 || l.Memory < min(leastMemory, total/2) || l.Disk < leastDisk || l.FileBytes != l.Disk {
			t.Errorf("%d slots: %s, and the machine has %d bytes of memory", slots, l, total)
		}
		if n := kernelNumber("/proc/sys/kernel/pid_max", 0); l.Processes*int64(slots) > n/2 {
			t.Errorf("%d slots: %d processes each, and the kernel has %d", slots, l.Processes, n)
		}
	}
}

func TestBreachIsASentence(t *testing.T) {
	for _, c := range []struct {
		b    Breach
		want string
	}{
		{Breach{Resource: Memory, Limit: 4 << 30, Used: 4<<30 + 400<<20},
			"The run used more than 4 GiB of memory, which is the limit of one run on this box; it had 4.3 GiB when it was ended."},
		{Breach{Resource: Processes, Limit: 100, Used: 300},
			"The run used more than 100 processes and threads, which is the limit of one run on this box; it had 300 processes and threads " +
				"when it was ended."},
		{Breach{Resource: Inodes, Limit: 3000, Used: 3001},
			"The run used more than 3000 files and folders, which is the limit of one run on this box; it had 3001 files and folders when it " +
				"was ended."},
		{Breach{Resource: FileBytes, Limit: 64 << 20, Used: 64 << 20},
			"The run wrote a file of 64 MiB, the largest size that a file may have on this box."},
		{Breach{Resource: Disk, Used: 60 << 30, Free: 200 << 20},
			"The disk of the box was nearly full (200 MiB were left), and this run used the most: 60 GiB."},
		{Breach{Resource: Inodes, Used: 6000, Free: 7},
			"The disk of the box was nearly out of files (7 were left), and this run used the most: 6000 files and folders."},
	} {
		var err error = &c.b
		if err.Error() != c.want || !strings.HasSuffix(c.want, ".") || !errors.As(err, new(*Breach)) {
			t.Errorf("%q, want %q", err, c.want)
		}
	}
}
