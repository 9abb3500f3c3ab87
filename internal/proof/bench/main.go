// Bench measures the program against baselines in the same run: each figure stands
// beside the figure of a bare handler that does no more than the same work, and the
// two alternate, so that a busy machine slows both alike. The measured program is the
// real one: `yardmaster serve` in a process of its own, called over loopback. The
// baselines are handlers in a second process, which is this program run with the word
// "baseline"; this process sends the load.
//
// `go run ./internal/proof/bench` prints a table; -write also writes it to
// docs/benchmarks.md and the pages that go on; `-only start,list` runs a part; -check fails if a target is missed
// each time, and prints where the processor's time went (with perf, where that is installed).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// documents are the files of -write, from the repository's root, with the first section of each.
var documents = []struct{ file, title, first string }{
	{"docs/benchmarks.md", "Benchmarks", "start"},
	{"docs/benchmarks-calls.md", "Benchmarks of connections and calls", "ingest"},
	{"docs/benchmarks-systems.md", "Benchmarks of other systems and people", "relay"},
}

// section is a part of the run, with rows that belong together.
type section struct {
	name  string
	about string
	run   func(context.Context, *bench) error
}

var sections = []section{
	{"start", "Start and idle memory. The baseline is a bare net/http server as a process of its own.", start},
	{"list", "Listing tasks, 50 a page, with a personal access token, from 4 clients. The baseline is a bare net/http handler: the same statements on the same database file, prepared, scanned by hand into the same struct, encoded with the same JSON library.", list},
	{"pending", "Listing a page of 5,000 pending tasks in 20 repositories, each with its place in the queue and what holds it. The baseline is the same page of as many tasks that are over, from another server; both databases, 4 clients.", pending},
	{"coding", "The same page of tasks, compressed as the client asks and plain, 4 clients, who do not unpack it.", coding},
	{"create", "Filing tasks from 16 clients, durable before the answer. The baseline is a bare net/http handler that decodes the body and commits one insert of the same row alone, into the same schema; the program also looks up repository, template and seats, writes the chained audit row and keeps the depth of the queue.", create},
	{"dispatch", "From the answer of task.create until the box knows that its acceptance of the run is stored. The baseline is three durable SQLite commits and one NATS round trip, nothing else. Then what one task of a rush costs the server, without what its agent reports: groups of commits share what is written.", dispatch},
	{"claim", "A box claims the next task: the whole call on the domain, with its run, session, tokens and audit rows. The baseline is the same call on a short queue, the two taking turns; both databases.", claim},
	{"ingest", "Events from a box into the database, in order, exactly once, 32 a message, 32 runs at a time, each answered once it is durable. The baseline is bare inserts of the same rows, 32 in a statement and a durable commit each.", ingest},
	{"fleet", "1,000 boxes, each in a NATS account of its own, connect, say hello and beat. The baseline is as many plain connections to a NATS server in which all share one account, each of which asks one question.", fleetOf},
	{"guard", "What request id, limits, credential, scope, checks and encoding add to a request: a capability that does nothing behind the program's own pipeline, on the database of a server that was set up. The baseline is a bare net/http handler in the same process that decodes the same body and encodes the same answer.", guard},
	{"mcp", "The same capability called as a tool. The baseline is its own route, in the same process; for the list, which is of the whole program, it is a ping.", tools},
	{"plan", "From the call of plan.approve until its answer: the tasks of all groups of a held plan are minted in one durable transaction, each with its dependencies and its audit row. The baseline inserts as many bare rows of tasks into the same schema in one durable commit.", approvePlan},
	{"streams", "5,000 connections follow the tasks of one account on one node while tasks are filed; the program's time includes filing the task durably. The memory is the difference of the resident set before them and after, by the number of connections. The baseline is a bare net/http server that hands one frame to as many channels, and stores and checks nothing. The readers share the cores with both.", following},
	{"tails", "500 connections follow one live run on PostgreSQL, which counts how often the table of events is read; the baseline is one connection that follows another run saying the same.", tails},
	{"greed", "Calls of one account, one after the other, while another account holds all the streams (and waits, which are one count with them), pushes, calls whose bodies do not come, and idle connections that it is given, from thousands of addresses. The baseline is the same server while it holds none; the two take turns.", greed},
	{"gateway", "What the model gateway adds to the median of a sequential call to an upstream on loopback, with its account stored durably within 20 ms. The baseline is the standard library's reverse proxy, which keeps no account.", gateway},
	{"pool", "What routing among 20 keys, what is known of each and the durable account add to a streamed call of eight runs, at 1, 16 and 256 calls at once: the difference to calls that go to the upstream itself. The baseline is the standard library's reverse proxy, which adds less because it knows one way and keeps no account; the three take turns. Then as many calls through an upstream that answers one in ten with 500.", pool},
	{"relay", "Git through the relay to a repository at another code host: cloning 100 MB that do not pack, and listing refs. The baseline is the same git at the host itself. Host and relay are servers of this process.", relayClone},
	{"addition", "Adding a repository of 500 MB that do not pack, with 5,000 branches and tags, as `repo add` does: checked by git, and each branch and tag on the record. The baseline is `git push` of the same to a bare repository on the same disk, which looks at nothing.", addition},
	{"checkout", "What a box does of a run before its agent begins, of a repository that it has never seen, with files of Git LFS and a submodule with as many. The baseline is git with git-lfs, which clones the same from the same server. Then the same of a small repository that it knows and that has neither; the baseline is one whose policy file has it look for neither.", checkouts},
	{"delivery", "Deliveries of a code host, signed, 20 KB each, from 16 clients, stored before the answer. They pack to a sixth, as those of GitHub do; the product stores them packed. The baseline is a bare net/http handler that checks the same signature and commits one row. Both are servers of this process.", deliveries},
	{"sweep", "The search for what was not delivered, in 1,000 repositories that have not changed, at an API that answers conditional requests with 304. The requests are counted; the time is for information.", sweep},
	{"webhook", "Events to webhooks of this process, signed, each with its row of the ledger. The baseline sends as many signed requests, as many at once, and commits a row for each, in groups. Then the time from an event to its arrival at 99 webhooks, alone and beside one that never answers.", webhooks},
	{"digest", "The daily digest of 10,000 events (tasks that ended, merges, checks, minutes of spending, escalations), behind 200,000 older ones: from the search for what is due until it is stored. Both databases.", digests},
	{"usage", "What billing.usage answers of a month of 1,000,000 calls: by the day, and by model, repository, kind, key, task and plan, with caps and the forecast, through the whole of the REST interface. Both databases.", usage},
	{"dashboard", "A page in a real browser, Chromium, on the same cores. The baseline of the first paint is a page of this server without a script, of a row's coming a call that changes nothing, of what is drawn a loop in the same page that splits 40,000 short texts. The baseline of the command is a program that asks for the same page of tasks and prints it as it came.", faces},
	{"inbox", "From an escalation that somebody else causes until a person who follows the topic notifications has its row: the durable call, the reader of the record, and the stream. The baseline is a bare handler that commits one insert, and another that hands one frame to a channel, called one after the other. Then what it adds to filing tasks, from 16 clients, that a person follows their inbox; the baseline is the same server without.", inbox},
	{"first", "What one who is new waits for: the demo of the README, with a program that is built, and the one line that makes a box of a machine, from asking for it until the box is online.", first},
	{"metrics", "A page of 50 of 10,000 tasks, 4 clients, from a server that counts for Prometheus. The baseline is the same server without `metrics-listen`; the two take turns.", counted},
	{"backup", "Filing tasks from 16 clients while a backup of 1 GB is made of the same server: 400,000 tasks, and a repository of 700 MB that do not pack. The baseline is the same server while none is made; the two take turns, and share the cores and the disk.", copied},
	{"knowledge", "Searches for what people type in 10,000 pages of 2 to 20 kB, 300 of them, with ten excerpts, each the middle one of five rounds, and pages that are replaced; both databases, which have to find the same. The baseline of a search reads ten pages by their names, that of a page a durable update of its row without the lists.", knowledge},
	{"board", "A board of 20 widgets, from the call until its answer, over a million tasks of a year. The baseline is the same board of a server with a thousand tasks.", board},
	{"objects", "16 MB stored durably and read by signed addresses of a folder of objects. The baseline is a bare handler on the same disk that copies the body into a file, syncs and renames it, and serves it; the ratio is that of the rates.", objects},
	{"simulation", "What yardmaster simulate does with the record of a week. The baseline sorts the same record by priority and age.", simulation},
}

// bench is the state that the sections share.
type bench struct {
	dir  string // of this run's data
	bin  string // the measured program
	self string // this program
	rows []row

	profiles *profiles // of what is measured; nil: none are taken
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "baseline" {
		exit(serveBaseline(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "fleet" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		exit(simulateFleet(ctx, os.Args[2:], os.Stdout))
	}
	var write, check bool
	var only, dir string
	flag.BoolVar(&write, "write", false, "write "+documents[0].file+" and those that go on, too")
	flag.BoolVar(&check, "check", false, "fail if a target is missed that is not known to be (missed.tsv)")
	flag.StringVar(&only, "only", "", "comma-separated sections to run")
	flag.StringVar(&dir, "dir", "", "folder for the data, on the disk to measure; the temporary one when empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, dir, only, write, check))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, dir, only string, write, check bool) (err error) {
	if write && only != "" {
		return errors.New("-write needs all sections: leave -only out")
	}
	b := &bench{}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(dir, "yardmaster-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	b.bin = filepath.Join(b.dir, "yardmaster")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.bin, "yardmaster/cmd/yardmaster").CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	began, load := time.Now(), loadAverage()
	for _, s := range sections {
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		fmt.Printf("\n%s: %s\n", s.name, s.about)
		first := len(b.rows)
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for i := first; i < len(b.rows); i++ {
			b.rows[i].section = s.name
			fmt.Println(b.rows[i].line())
		}
	}
	took := time.Since(began)
	fmt.Printf("\n%s, in %.0f s.\n", verdict(b.rows), took.Seconds())
	if check {
		return b.check(ctx)
	}
	if !write {
		return nil
	}
	for file, text := range pages(b.rows, took, load) {
		err = errors.Join(err, os.WriteFile(file, text, 0o644))
	}
	return err
}
