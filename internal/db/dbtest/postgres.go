package dbtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"yardmaster/internal/db"
	"yardmaster/internal/db/migrations"
)

// clusterEnv is the environment variable with the address of an existing cluster.
const clusterEnv = "YARDMASTER_TEST_POSTGRES"

// postgresCluster is the cluster of this process, started on first use.
type postgresCluster struct {
	once  sync.Once
	err   error
	admin *url.URL       // address of a superuser, for the database postgres
	life  io.WriteCloser // the guard's standard input: the cluster ends when it is closed
	ended chan struct{}  // closed when the guard has ended; nil if the cluster belongs to another process

	template sync.Once
	name     string // of the template database
	copying  string // the option to make databases from it by copying files, which takes a third of the time
	tmplErr  error
}

// cluster is shared by all tests of the process.
var cluster postgresCluster

var databases atomic.Int64

// postgresDatabase makes a database from the template and drops it when the test
// ends.
func postgresDatabase(t testing.TB) string {
	t.Helper()
	template, err := cluster.ready(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return made(t, ` TEMPLATE `+template+cluster.copying)
}

// Empty makes a PostgreSQL database without a schema, and drops it when the test ends.
func Empty(t testing.TB) (dsn string) {
	t.Helper()
	if _, err := cluster.ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	return made(t, ``)
}

func made(t testing.TB, how string) (dsn string) {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	if err := cluster.exec(`CREATE DATABASE ` + name + how); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.exec(`DROP DATABASE ` + name + ` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	return cluster.address(name)
}

// Throwaway returns the address of a fresh database for a program that measures:
// the SQLite file at path, without a schema, or a database of the cluster of this
// process. drop removes it.
func Throwaway(ctx context.Context, e db.Engine, path string) (dsn string, drop func(), err error) {
	if e == db.SQLite {
		return "sqlite:" + path, func() { _ = os.Remove(path) }, nil
	}
	template, err := cluster.ready(ctx)
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("throwaway_%d_%d", os.Getpid(), databases.Add(1))
	if err := cluster.exec(`CREATE DATABASE ` + name + ` TEMPLATE ` + template + cluster.copying); err != nil {
		return "", nil, err
	}
	return cluster.address(name), func() { _ = cluster.exec(`DROP DATABASE ` + name + ` WITH (FORCE)`) }, nil
}

// Shared starts the cluster of this process, with the template, for the tests of
// other processes. env is NAME=VALUE for their environment; end stops the cluster.
func Shared(ctx context.Context) (env string, end func(), err error) {
	if _, err := cluster.ready(ctx); err != nil {
		return "", nil, err
	}
	return clusterEnv + "=" + cluster.admin.String(), cluster.stop, nil
}

// ready starts the cluster and makes the template, each once, and returns the
// template's name.
func (c *postgresCluster) ready(ctx context.Context) (string, error) {
	c.once.Do(func() {
		if dsn := os.Getenv(clusterEnv); dsn != "" {
			c.admin, c.err = url.Parse(dsn)
			return
		}
		c.err = c.start(ctx)
	})
	if c.err != nil {
		return "", fmt.Errorf("dbtest: PostgreSQL: %w", c.err)
	}
	c.template.Do(func() { c.name, c.tmplErr = c.makeTemplate(ctx) })
	if c.tmplErr != nil {
		return "", fmt.Errorf("dbtest: template database: %w", c.tmplErr)
	}
	return c.name, nil
}

// guardScript makes a cluster in the folder $2 with the programs of $1 and the
// settings $3. It runs the cluster until standard input ends, which happens when
// the test process ends for any reason, and removes the folder. QUIT ends the
// server at once, but a server that was just started by a shell ignores it; TERM
// ends that one.
const guardScript = `
exec >"$2/log" 2>&1
"$1/initdb" -D "$2/data" -U postgres -A trust -E UTF8 --locale=C --no-sync || exit
printf %s "$3" >>"$2/data/postgresql.conf"
"$1/postgres" -D "$2/data" -k "$2" </dev/null &
server=$!
cat >/dev/null
kill -TERM $server
kill -QUIT $server
wait $server
rm -rf "$2"`

// settings trade durability for speed, because the cluster does not outlive the
// tests.
const settings = `
listen_addresses = ''
max_connections = 500
shared_buffers = 64MB
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_size = 128MB
max_wal_senders = 0
deadlock_timeout = 50ms
`

// inMemory returns a folder in memory with enough space for a cluster, or "". A
// database is a thousand small files, and on a disk the tests spend most of their
// time making and removing them.
func inMemory() string {
	const dir, space = "/dev/shm", 2 << 30
	var at syscall.Statfs_t
	if err := syscall.Statfs(dir, &at); err != nil || at.Bavail*uint64(at.Bsize) < space {
		return ""
	}
	return dir
}

func (c *postgresCluster) start(ctx context.Context) (err error) {
	bin, err := programs()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(inMemory(), "yardmaster-pg-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.stop()
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	attr := &syscall.SysProcAttr{Setsid: true} // the guard does not get an interrupt typed at the terminal
	if os.Geteuid() == 0 {
		// PostgreSQL refuses to run as root.
		if attr.Credential, err = unprivileged("postgres"); err != nil {
			return err
		}
		if err := os.Chown(dir, int(attr.Credential.Uid), int(attr.Credential.Gid)); err != nil {
			return err
		}
	}
	guard := exec.Command("/bin/sh", "-c", guardScript, "sh", bin, dir, settings)
	guard.SysProcAttr, guard.Dir = attr, dir
	if c.life, err = guard.StdinPipe(); err != nil {
		return err
	}
	if err := guard.Start(); err != nil {
		return err
	}
	c.ended = make(chan struct{})
	go func() {
		_ = guard.Wait() // the log tells how it ended
		close(c.ended)
	}()
	c.admin = &url.URL{
		Scheme: "postgres", User: url.User("postgres"), Path: "/postgres",
		RawQuery: url.Values{"host": {dir}}.Encode(),
	}
	return c.await(ctx, filepath.Join(dir, "log"))
}

// await returns when the cluster answers, or an error with its log.
func (c *postgresCluster) await(ctx context.Context, log string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // one that has failed has ended before
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, c.admin.String())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
			continue
		case <-c.ended:
		case <-ctx.Done():
		}
		out, _ := os.ReadFile(log)
		return fmt.Errorf("no answer: %w\n%s", err, out)
	}
}

// stop ends the cluster if this process started it.
func (c *postgresCluster) stop() {
	if c.ended == nil {
		return
	}
	_ = c.life.Close()
	<-c.ended
}

// makeTemplate makes the template of this schema unless another process of the same
// test run has made it.
func (c *postgresCluster) makeTemplate(ctx context.Context) (name string, err error) {
	sum, err := schemaSum()
	if err != nil {
		return "", err
	}
	name = "template_" + sum
	conn, err := pgx.Connect(ctx, c.admin.String())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	// Versions before 15 always copy files and do not know the option.
	err = conn.QueryRow(ctx, `SELECT CASE WHEN current_setting('server_version_num')::INT >= 150000
		THEN ' STRATEGY FILE_COPY' ELSE '' END`).Scan(&c.copying)
	if err != nil {
		return "", err
	}
	// The lock is held until the connection closes.
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(712026)`); err != nil {
		return "", err
	}
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, name).Scan(&exists)
	if err != nil || exists {
		return name, err
	}
	// The database has another name until it is complete.
	for _, text := range []string{
		`DROP DATABASE IF EXISTS template_unfinished WITH (FORCE)`,
		`CREATE DATABASE template_unfinished TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'`,
	} {
		if _, err := conn.Exec(ctx, text); err != nil {
			return "", err
		}
	}
	d, err := db.Open(ctx, c.address("template_unfinished"), db.Options{MaxConns: 2})
	if err != nil {
		return "", err
	}
	if err := d.Close(); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `ALTER DATABASE template_unfinished RENAME TO `+name)
	return name, err
}

func (c *postgresCluster) exec(text string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.admin.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err = conn.Exec(ctx, text); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

func (c *postgresCluster) address(database string) string {
	u := *c.admin
	u.Path = "/" + database
	return u.String()
}

func schemaSum() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(migrations.FS, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), err
}

// programs returns the folder of PostgreSQL's programs.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	for i := len(found) - 1; i >= 0; i-- {
		// initdb searches for its files relative to its real path.
		path, err := filepath.EvalSymlinks(found[i])
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "initdb")); err == nil {
			return filepath.Dir(path), nil
		}
	}
	return "", errors.New("postgres and initdb are not found; run `make deps`, " +
		"and put the folder on the PATH that it names")
}

func unprivileged(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("running as root needs the user %s for the server; run `make deps`: %w", name, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
