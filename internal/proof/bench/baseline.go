package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/signal"
	"syscall"
)

// serveBaseline runs the other process, with handlers that do the least for the same
// work. Without a database or an upstream it serves /healthz.
func serveBaseline(args []string) error {
	fl := flag.NewFlagSet("baseline", flag.ContinueOnError)
	listen := fl.String("listen", "", "host:port")
	read := fl.String("read", "", "database file of the program, to list from")
	write := fl.String("write", "", "database file to make, to insert into")
	guard := fl.String("guard", "", "database file of the program, whose credentials are taken")
	upstream := fl.String("upstream", "", "address to proxy to")
	bus := fl.String("bus", "", "host:port of a NATS server that answers on echo")
	events := fl.Bool("events", false, "hand what is posted to all who listen")
	address := fl.String("fetch", "", "address to ask for, instead of serving")
	if err := fl.Parse(args); err != nil {
		return err
	}
	if *address != "" {
		return fetch(*address)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	if *read != "" {
		l, err := newLister(*read)
		if err != nil {
			return err
		}
		mux.Handle("GET /tasks", l)
	}
	if *write != "" {
		c, err := newCreator(*write)
		if err != nil {
			return err
		}
		mux.Handle("POST /tasks", c)
	}
	if *guard != "" {
		h, err := guarded(*guard)
		if err != nil {
			return err
		}
		mux.Handle("/v1/", h)
		mux.HandleFunc("POST /bare", bareEcho)
	}
	if *events {
		e := &bareEvents{listeners: map[chan []byte]bool{}}
		mux.HandleFunc("GET /events", e.get)
		mux.HandleFunc("POST /events", e.post)
	}
	if *bus != "" {
		stop, err := serveBus(*bus)
		if err != nil {
			return err
		}
		defer stop()
	}
	if *upstream != "" {
		target, err := url.Parse(*upstream)
		if err != nil {
			return err
		}
		mux.Handle("/v1/", httputil.NewSingleHostReverseProxy(target))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: mux}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// openSQLite opens a file as internal/db does, with one writer or four readers.
func openSQLite(path string, readOnly bool) (*sql.DB, error) {
	q := url.Values{"_busy_timeout": {"5000"}, "_foreign_keys": {"1"}}
	conns := 1
	if readOnly {
		q.Set("mode", "ro")
		q.Set("_query_only", "1")
		conns = 4
	} else {
		q.Set("_txlock", "immediate")
		q["_pragma"] = []string{"journal_mode(WAL)", "synchronous(FULL)"}
	}
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return pool, nil
}
